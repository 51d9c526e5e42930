//go:build !linux

package malloc

// Keep does nothing on this system.
func Keep() bool { return false }

// ReturnLarge does nothing on this system.
func ReturnLarge() bool { return false }

// Trim does nothing on this system.
func Trim() {}
