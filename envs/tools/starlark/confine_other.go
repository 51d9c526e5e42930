//go:build !linux

package starlark

// confine does nothing here: the watch of Serve alone bounds memory.
func confine(int64) error { return nil }
