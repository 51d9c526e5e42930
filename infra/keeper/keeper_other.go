//go:build !linux

package keeper

import (
	"os"
	"syscall"
)

// Hide does nothing here: only Linux lets a process hide its variables from others of the same user.
func Hide() error { return nil }

// Executable is this program.
func Executable() (string, error) { return os.Executable() }

func confine() error { return nil }

// ofProgram: the program leads a group, with which it is killed.
func ofProgram() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopts: no other system has a keeper adopt what the program's children leave.
const adopts = false

// killChildren kills the program's group. What left the group is not known here, and stays.
func killChildren(program int) { _ = syscall.Kill(-program, syscall.SIGKILL) }
