// Package leak finds out after the tests of a package whether anything that they started still runs or is still held.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// patience is for goroutines that were told to end and have not come to it yet.
const patience = 10 * time.Second

// Check returns the exit code of a TestMain: that of the tests, or 1 if after tests that passed objects are alive, by name and
// number, or goroutines of this module run. Both are printed.
func Check(code int, objects map[string]int64) int {
	if code != 0 {
		return code // a test that failed may have left anything
	}
	for name, n := range objects {
		fmt.Fprintf(os.Stderr, "leak: %d %s are alive after all tests\n", n, name)
		code = 1
	}
	left := Goroutines()
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = Goroutines() {
		time.Sleep(10 * time.Millisecond)
	}
	for _, stack := range left {
		fmt.Fprintf(os.Stderr, "leak: a goroutine runs after all tests:\n%s\n\n", stack)
		code = 1
	}
	return code
}

// module is what functions of ours begin with in a stack.
const module = "joinbench/"

// Goroutines are the stacks of those goroutines, but for the calling one, that run code of this module or were started by it.
func Goroutines() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var ours []string
	for _, stack := range strings.Split(strings.TrimSpace(string(buf)), "\n\n")[1:] { // the first is the caller's
		for _, line := range strings.Split(stack, "\n")[1:] {
			if strings.HasPrefix(line, module) || strings.HasPrefix(line, "created by "+module) {
				ours = append(ours, stack)
				break
			}
		}
	}
	return ours
}
