package buckets

import "time"

// Stalls is how a store held up those who write to it, because its own flushes or compactions did not keep up (B43).
type Stalls struct {
	Delays, Stops int64         // how many times it began to slow writes down, and to stop them
	Time          time.Duration // that writes waited for it
	Stopped       bool          // it stops them now
	Pending       int64         // bytes that compactions would have to rewrite now, by RocksDB's estimate
}

// Add sums up the stalls of several stores.
func (s *Stalls) Add(o Stalls) {
	s.Delays += o.Delays
	s.Stops += o.Stops
	s.Time += o.Time
	s.Stopped = s.Stopped || o.Stopped
	s.Pending += o.Pending
}

// Stalls are those of the store since it was opened; none of a store that cannot stall. Any goroutine.
func (r *Ring) Stalls() Stalls {
	if s, ok := r.store.(interface{ Stalls() Stalls }); ok {
		return s.Stalls()
	}
	return Stalls{}
}
