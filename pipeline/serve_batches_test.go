package pipeline

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"joinbench/projection"
)

// batchTrace takes a Serve's trace: how many records each batch had, by whether filters were missing when it began.
type batchTrace struct {
	status   *Status
	begun    bool
	filtered bool // as the last batch left it
	read     int64
	small    []int64 // with filters missing, as they are at first
	large    []int64
}

func (b *batchTrace) Write(line []byte) (int, error) {
	var p servePoint
	if err := json.Unmarshal(line, &p); err != nil {
		return 0, err
	}
	n := p.A + p.B - b.read
	b.read += n
	if !b.begun {
		b.begun = true
		return len(line), nil
	}
	to := &b.small
	if b.filtered {
		to = &b.large
	}
	*to = append(*to, n)
	b.filtered = b.status.Snapshot().Levels.Unfiltered == 0
	return len(line), nil
}

// After a start on local state the filters are not there yet, and each B reads every bucket: batches are small until they are.
func TestServeBatchesAreSmallWithoutFilters(t *testing.T) {
	const full = 4 * recoveryBatch
	s := plainScene(t, "", 1, 1)
	s.produce("topic-a", plainRecords("a", 0, 100, 1))
	s.produce("topic-b", []projection.Record{plainRecord("b", 0, 1)})
	sc := s.serve()
	sc.Drain = false
	stop := s.start(sc)
	for read, sealed := int64(100), false; !sealed; read++ { // a batch more, and what is sealed beside them is taken in
		later := plainRecord("a", 1_000_000, 1)
		later.Timestamp += 600_000
		s.produce("topic-a", []projection.Record{later})
		n := s.until("what lets a bucket be sealed", func(n ServeSnapshot) bool { return n.Counters.A.Read > read && n.Counters.B.Read == 1 })
		sealed = n.Levels.Sealed > 0
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	s.status = &Status{}
	trace := &batchTrace{status: s.status}
	sc = s.serve()
	sc.Drain, sc.BatchRecords, sc.CommitInterval, sc.Trace = false, full, time.Hour, trace
	stop = s.start(sc)
	if n := s.until("it runs", func(n ServeSnapshot) bool { return n.State == Running }); n.Levels.Unfiltered == 0 {
		t.Fatal("no filter is missing")
	}
	var asks []projection.Record
	for range 10 * full {
		asks = append(asks, plainRecord("b", 1, 1))
	}
	s.produce("topic-b", asks)
	s.until("large batches", func(n ServeSnapshot) bool { return n.Counters.B.Read >= 8*full })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(trace.small) == 0 || len(trace.large) == 0 {
		t.Fatalf("%d batches without filters, %d with", len(trace.small), len(trace.large))
	}
	for i, n := range trace.small {
		if n > recoveryBatch {
			t.Errorf("batch %d had %d records while filters were missing", i, n)
		}
	}
	if most := slices.Max(trace.large); most <= recoveryBatch {
		t.Errorf("no batch had more than %d records once the filters were there", most)
	}
}
