package malloc

/*
#include <malloc.h>

// The constant is glibc's; another C library keeps its own ways.
static int return_large(int bytes) {
#ifdef M_MMAP_THRESHOLD
	return mallopt(M_MMAP_THRESHOLD, bytes);
#else
	return 0;
#endif
}

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

// ReturnLarge makes the allocator return each block of a MiB or more to the system when it is
// freed, and reports whether it does so from now on. By itself glibc keeps freed blocks of up
// to 32 MiB, which are most of a large model's tensors, so a process would hold several times
// the memory of its state. It costs a page fault for each page of a new block, so small
// models do better without.
func ReturnLarge() bool { return C.return_large(large) == 1 }

// Trim returns freed blocks of any size to the system, as a compiler leaves them.
func Trim() { C.trim() }
