package kafka

import (
	"bytes"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// cpu is what this process has used.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what is alive, without what pools keep.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestB36NobodyReads: with rows of 150 KiB and a sink that takes nothing, memory stays below what the options say, nothing
// spins, and no row is lost when reading goes on (case B36).
func TestB36NobodyReads(t *testing.T) {
	const (
		rows, parts = 120, 4
		row         = 150 << 10
		fetch       = 2 << 20
		queue       = 1 << 20
	)
	b := newBroker(t, kfake.SeedTopics(parts, "in"), kfake.DataDir(t.TempDir()))
	value := bytes.Repeat([]byte("x"), row)
	for p := range int32(parts) {
		for range rows {
			if err := b.cl.ProduceSync(within(t), &kgo.Record{Topic: "in", Partition: p, Value: value}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := heap()
	c := b.consumer(b.options(), ConsumerOptions{FetchMaxBytes: fetch, QueueBytes: queue})
	var readers [parts]*Reader
	for p := range readers {
		readers[p] = mustOpen(t, c, "in", int32(p), 0, rows)
	}
	for _, r := range readers { // one record each: then nobody reads
		if n, err := readSome(t, r, make([]projection.Record, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	full := func() bool {
		for _, r := range readers {
			r.mu.Lock()
			paused := r.paused
			r.mu.Unlock()
			if !paused {
				return false
			}
		}
		return true
	}
	wait(t, "all partitions are paused", full)
	const blocked = 2 * time.Second
	from := cpu(t)
	<-time.After(blocked) // what is measured is this time
	used := cpu(t) - from
	held := heap() - before
	most := int64(parts*(queue+fetch/partitionShare+row+fetch) + 2*fetch)
	t.Logf("held %.1f MiB, at most %.1f; CPU %v in %v", float64(held)/(1<<20), float64(most)/(1<<20), used, blocked)
	if held > most {
		t.Errorf("%d bytes are held, at most %d may be", held, most)
	}
	if used > blocked/20 {
		t.Errorf("%v of CPU in %v in which nobody read", used, blocked)
	}
	if !full() {
		t.Error("a partition is fetched although nobody reads it")
	}
	for p, r := range readers {
		next := int64(1)
		dst := make([]projection.Record, 3)
		for {
			n, err := readSome(t, r, dst)
			if err != nil {
				wantEOF(t, err)
				break
			}
			for _, rec := range dst[:n] {
				if rec.Offset != next || len(rec.Value) != row {
					t.Fatalf("partition %d: offset %d with %d bytes, want %d", p, rec.Offset, len(rec.Value), next)
				}
				next++
			}
		}
		if next != rows {
			t.Errorf("partition %d ended at %d", p, next)
		}
	}
}

// TestASlowPartitionHoldsNoOther: one that nobody reads does not keep the others from being read.
func TestASlowPartitionHoldsNoOther(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(2, "in"))
	for p := range int32(2) {
		for range 300 {
			if err := b.cl.ProduceSync(within(t), &kgo.Record{Topic: "in", Partition: p, Value: []byte(strings.Repeat("x", 4096))}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := b.consumer(b.options(), ConsumerOptions{FetchMaxBytes: 256 << 10, QueueBytes: 64 << 10})
	slow := mustOpen(t, c, "in", 0, 0, 300)
	values, _, err := read(t, mustOpen(t, c, "in", 1, 0, 300), -1)
	wantEOF(t, err)
	if len(values) != 300 {
		t.Errorf("%d records", len(values))
	}
	if slow.wanted() == 300 {
		t.Error("all of the slow one is held: this test shows nothing")
	}
	if values, _, err = read(t, slow, -1); len(values) != 300 {
		t.Errorf("%d records of the slow one", len(values))
	}
	wantEOF(t, err)
}
