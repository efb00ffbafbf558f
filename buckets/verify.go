package buckets

import "fmt"

// VerifyJob compares the tables that were there when it was made with what was written. Run may be called from any
// goroutine, once; the families must not be dropped meanwhile: run both on one helper goroutine, in order.
type VerifyJob struct {
	store Backend
	runs  []verifyRun
}

type verifyRun struct {
	run
	epoch int64
}

// StartVerify returns a job for all runs that there are.
func (r *Ring) StartVerify() *VerifyJob {
	j := &VerifyJob{store: r.store}
	for _, b := range r.slots {
		if b == nil {
			continue
		}
		for _, run := range b.runs {
			j.runs = append(j.runs, verifyRun{run, b.Epoch})
		}
	}
	return j
}

// Run fails at the first table that is not what was written. A lookup would not notice: a key with a flipped bit is just
// not found.
func (j *VerifyJob) Run() error {
	for _, r := range j.runs {
		sum, err := j.store.Sum(r.family)
		if err != nil {
			return fmt.Errorf("checking the table of bucket %d: %w", r.epoch, err)
		}
		if sum != r.stats.Sum {
			return fmt.Errorf("the table of bucket %d is damaged: its file is not what was written (checksum %016x, was %016x). Remove the state directory and start anew", r.epoch, sum, r.stats.Sum)
		}
	}
	return nil
}
