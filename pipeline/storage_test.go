package pipeline

import (
	"testing"
	"time"

	"joinbench/buckets"
	"joinbench/results"
)

func TestStorage(t *testing.T) {
	opened := time.Unix(1000, 0)
	m := &meter{b: &bench{opening: opened}, last: reading{at: opened.Add(10 * time.Second)},
		io: [2]results.IO{{Read: 100, Written: 1000, Known: true}, {Read: 400, Written: 5000, Known: true}}}
	s := m.storage(&buckets.Stalls{Time: time.Second, Pending: 7}, 2000, "ext4")
	if *s.BytesRead != 300 || *s.BytesWritten != 4000 || *s.WriteAmp != 2 || *s.StallRatio != 0.1 || *s.PendingCompactionBytes != 7 {
		t.Errorf("%+v", s)
	}
	for _, fs := range []string{"tmpfs", "ramfs"} {
		if s := m.storage(&buckets.Stalls{}, 2000, fs); s.BytesWritten != nil || s.WriteAmp != nil || *s.StallRatio != 0 {
			t.Errorf("%s: %+v", fs, s)
		}
	}
	m.io[1].Known = false
	if s := m.storage(&buckets.Stalls{}, 2000, "ext4"); s.BytesWritten != nil {
		t.Errorf("unknown: %+v", s)
	}
	m.io[1].Known = true
	if s := m.storage(&buckets.Stalls{}, 0, "ext4"); s.WriteAmp != nil || *s.BytesWritten != 4000 {
		t.Errorf("without A: %+v", s)
	}
}

func TestBatchP99(t *testing.T) {
	s := newSamples(false)
	if s.batchP99() != 0 || positive(s.batchP99()) != nil {
		t.Error("a p99 of nothing")
	}
	at := func(ms, waited int) reading {
		return reading{at: time.UnixMilli(int64(ms)), waited: time.Duration(waited) * time.Millisecond}
	}
	for i := range 100 {
		s.batch(at(1000, 5), at(1000+i+1+50, 5+50)) // i+1 ms, and 50 ms of waiting
	}
	if got := s.batchP99(); got != 99*time.Millisecond {
		t.Errorf("p99 %v", got)
	}
	s.add(sample{}, at(0, 0))
	if s.batchP99() != 0 {
		t.Error("a sample began with the batches of the one before")
	}
	for range maxBatches + 10 {
		s.batch(at(0, 0), at(1, 0))
	}
	if len(s.batches) != maxBatches {
		t.Errorf("%d batches are kept", len(s.batches))
	}
	joined := sample{batchP99: 5, asking: 1, seals: 2}.with(&sample{batchP99: 3, asking: 10, seals: 20})
	if joined.batchP99 != 5 || joined.asking != 11 || joined.seals != 22 {
		t.Errorf("joined %+v", joined)
	}
}
