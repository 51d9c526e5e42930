//go:build !linux

package malloc

// ReturnLarge does nothing on this system.
func ReturnLarge() bool { return false }

// Trim does nothing on this system.
func Trim() {}
