// Package leftover finds what a test has left running: processes that it started and goroutines.
package leftover

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a process that has been told to end may take to do so.
const patience = 5 * time.Second

// Check fails the test if, at its end, this process has other goroutines or other children than now.
// What the test itself cleans up has to be registered after this call.
func Check(t testing.TB) {
	t.Helper()
	goroutines, before := goleak.IgnoreCurrent(), children(t)
	t.Cleanup(func() {
		goleak.VerifyNone(t, goroutines)
		for _, child := range newChildren(t, before, patience) {
			t.Errorf("a process is left: %s", child)
		}
	})
}

// newChildren are the children that are there in addition, after at most so long.
func newChildren(t testing.TB, before []string, wait time.Duration) []string {
	for until := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		left := slices.DeleteFunc(children(t), func(child string) bool {
			return slices.ContainsFunc(before, func(known string) bool { return number(known) == number(child) })
		})
		if len(left) == 0 || time.Now().After(until) {
			return left
		}
	}
}

// children are the processes that this one has started and not waited for, as "NUMBER STATE NAME". One that has
// ended has the state Z. There are none on a system without /proc.
func children(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if child, ok := childOf(os.Getpid(), string(content)); ok {
			out = append(out, child)
		}
	}
	return out
}

// number is a child's, whose state changes.
func number(child string) string {
	n, _, _ := strings.Cut(child, " ")
	return n
}

// childOf reads a process's line of /proc/NUMBER/stat; false unless it is a child of parent.
func childOf(parent int, stat string) (string, bool) {
	number, rest, _ := strings.Cut(stat, " (")
	end := strings.LastIndex(rest, ") ") // a name may have parentheses
	if end < 0 {
		return "", false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
		return "", false
	}
	return number + " " + fields[0] + " " + rest[:end], true
}
