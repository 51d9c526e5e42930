//go:build !linux

package storetest

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func attributes(string) bool { return false }
