package core

import "joinbench/buckets"

// Stalls are those of all tasks' stores. Any goroutine may ask, at any time before Close.
func (e *Engine) Stalls() buckets.Stalls {
	var s buckets.Stalls
	for _, t := range e.tasks {
		s.Add(t.ring.Stalls())
	}
	return s
}
