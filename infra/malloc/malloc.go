// Package malloc sets up the C library's allocator, from which XLA has its memory on a CPU.
package malloc

// large is the size in bytes from which a block is returned to the system when it is freed.
const large = 1 << 20
