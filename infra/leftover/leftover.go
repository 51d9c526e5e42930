// Package leftover finds what a test has left running: processes that it started and goroutines.
package leftover

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a goroutine or a process that has been told to end may take to do so.
const patience = 5 * time.Second

// Check fails the test if, at its end, this process has more goroutines or other children than now.
// What the test itself cleans up has to be registered after this call.
func Check(t testing.TB) {
	t.Helper()
	goroutines, children := runtime.NumGoroutine(), Children(t)
	t.Cleanup(func() {
		for _, left := range compare(t, goroutines, children, patience) {
			t.Error(left)
		}
	})
}

// compare tells what is there in addition, after at most so long.
func compare(t testing.TB, goroutines int, children []string, wait time.Duration) (left []string) {
	for until := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		more := slices.DeleteFunc(Children(t), func(child string) bool {
			return slices.ContainsFunc(children, func(before string) bool { return number(before) == number(child) })
		})
		now := runtime.NumGoroutine()
		if now <= goroutines && len(more) == 0 {
			return nil
		}
		if time.Now().Before(until) {
			continue
		}
		if now > goroutines {
			left = append(left, fmt.Sprintf("%d goroutines, %d before the test:\n%s", now, goroutines, stacks()))
		}
		for _, child := range more {
			left = append(left, "a process is left: "+child)
		}
		return left
	}
}

func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// Children are the processes that this one has started and not waited for, as "NUMBER STATE NAME". One that has
// ended has the state Z. There are none on a system without /proc.
func Children(t testing.TB) []string {
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
	slices.Sort(out)
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

// Gone fails the test unless a process has ended soon: also one that is not a child of this process, whose parent may not
// have waited for it.
func Gone(t testing.TB, number int) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", number))
		if err != nil || strings.Contains(string(content), ") Z ") || strings.Contains(string(content), ") X ") {
			return
		}
		if time.Now().After(until) {
			t.Errorf("a process is left: %s", content)
			return
		}
	}
}
