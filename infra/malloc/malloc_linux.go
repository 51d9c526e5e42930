package malloc

/*
#include <malloc.h>

// The constants are glibc's; another C library keeps its own ways.
#ifdef M_ARENA_MAX

// All threads share one heap. By itself glibc gives threads heaps of their own, in which a
// block of 64 MiB does not fit: it comes from the system each time. It is chosen before Go has
// threads, because a thread keeps the heap it has.
__attribute__((constructor)) static void share(void) { mallopt(M_ARENA_MAX, 1); }

static int keep(void) { return mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, -1); }
static int return_large(int bytes) {
	return mallopt(M_MMAP_MAX, 65536) && mallopt(M_TRIM_THRESHOLD, 128 << 10) && mallopt(M_MMAP_THRESHOLD, bytes);
}
#else
static int keep(void) { return 0; }
static int return_large(int bytes) { return 0; }
#endif

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

// Keep makes the allocator keep all freed blocks for later ones, unless ReturnLarge was
// called, and reports whether it does. A block from the system costs a page fault for each of
// its pages, and XLA has new blocks for each execution: the faults are a fifth of a small
// model's update.
func Keep() bool {
	state.Lock()
	defer state.Unlock()
	return !state.returns && C.keep() == 1
}

// ReturnLarge makes the allocator return each block of a MiB or more to the system when it is
// freed, and reports whether it does so from now on, until the process ends. By itself glibc
// keeps freed blocks of up to 32 MiB, which are most of a large model's tensors, so a process
// would hold several times the memory of its state.
func ReturnLarge() bool {
	state.Lock()
	defer state.Unlock()
	state.returns = C.return_large(large) == 1
	return state.returns
}

// Trim returns freed blocks of any size to the system, as a compiler leaves them.
func Trim() { C.trim() }
