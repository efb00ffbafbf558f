package main

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPin: all threads are on one of the processors that they had, and other numbers are others of these.
func TestPin(t *testing.T) {
	var had unix.CPUSet
	if err := unix.SchedGetaffinity(0, &had); err != nil {
		t.Fatal(err)
	}
	each := func(do func(id int)) {
		t.Helper()
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range threads {
			id, err := strconv.Atoi(th.Name())
			if err != nil {
				t.Fatal(err)
			}
			do(id)
		}
	}
	restore := func() { each(func(id int) { _ = unix.SchedSetaffinity(id, &had) }) }
	t.Cleanup(restore)
	seen := map[unix.CPUSet]bool{}
	for n := range 2 * had.Count() {
		if err := pin(n); err != nil {
			t.Fatal(err)
		}
		each(func(id int) {
			var on unix.CPUSet
			if err := unix.SchedGetaffinity(id, &on); err == unix.ESRCH {
				return
			} else if err != nil || on.Count() != 1 {
				t.Errorf("pin %d: thread %d may use %d processors, %v", n, id, on.Count(), err)
			}
			seen[on] = true
		})
		restore()
	}
	if len(seen) != had.Count() {
		t.Errorf("%d processors were used, of %d", len(seen), had.Count())
	}
}
