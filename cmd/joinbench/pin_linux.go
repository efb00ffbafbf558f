package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin keeps this process on one processor: the n-th of those that it may use, counted around. Threads that there are by now do not inherit
// what is set for one of them, so each is told; those that come later inherit it.
func pin(n int) error {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return err
	}
	var one unix.CPUSet
	for cpu, left := 0, n%may.Count(); ; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		if left == 0 {
			one.Set(cpu)
			break
		}
		left--
	}
	for told := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		before := len(told)
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || told[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &one); err != nil && err != unix.ESRCH { // it may have ended
				return err
			}
			told[id] = true
		}
		if len(told) == before { // none has come meanwhile
			return nil
		}
	}
}
