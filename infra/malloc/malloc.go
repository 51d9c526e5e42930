// Package malloc sets up the C library's allocator, from which XLA has its memory on a CPU.
// A program that imports it has one heap for all threads.
package malloc

import "sync"

// large is the size in bytes from which a block is returned to the system when it is freed.
const large = 1 << 20

// state is what the process has chosen.
var state struct {
	sync.Mutex
	returns bool
}
