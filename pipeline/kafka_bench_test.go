package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"

	"joinbench/results"
)

// TestMiddle: a rate is that of the middle nine tenths; where nothing lies between, that of all.
func TestMiddle(t *testing.T) {
	type point struct{ n, at int64 }
	count := func(p *point) int64 { return p.n }
	for name, c := range map[string]struct {
		points   []point
		from, to int64 // at
	}{
		"many":         {[]point{{0, 0}, {40, 1}, {60, 2}, {500, 3}, {940, 4}, {950, 5}, {1000, 6}}, 1, 5},
		"one step":     {[]point{{0, 0}, {0, 1}, {1000, 2}}, 1, 2},
		"stands still": {[]point{{0, 0}, {500, 1}, {1000, 2}, {1000, 9}}, 0, 2},
	} {
		if from, to := middle(c.points, count); from == nil || to == nil || from.at != c.from || to.at != c.to {
			t.Errorf("%s: from %v to %v", name, from, to)
		}
	}
	if _, to := middle([]point{{0, 0}}, count); to != nil {
		t.Error("nothing was counted, and there is a rate")
	}
}

// stack is a sample of a profile, the innermost function first.
func stack(ns int64, names ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{1, ns}}
	for _, n := range names {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: n}}}})
	}
	return s
}

// TestSplit: each sample goes to one part, by the innermost function that says something, and the parts add up to the CPU time.
func TestSplit(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, Sample: []*profile.Sample{
		stack(100, "runtime.memmove", "joinbench/projection.(*Decoder).append", "joinbench/pipeline.(*livePart).add", "joinbench/pipeline.(*liveFeed).decode"),
		stack(200, "github.com/pierrec/lz4/v4.x", "github.com/twmb/franz-go/pkg/kgo.(*decompressor).Decompress", "github.com/twmb/franz-go/pkg/kgo.(*source).handleReqResp"),
		stack(50, "syscall.Syscall6", "github.com/twmb/franz-go/pkg/kgo.(*brokerCxn).readConn"),
		stack(150, "runtime.cgocall", "github.com/linxGnu/grocksdb.x", "joinbench/buckets.(*Rocks).Commit", "joinbench/core.(*Engine).Run"),
		stack(60, "libc"),
		stack(40, "lz4.y", "github.com/twmb/franz-go/pkg/kgo.(*compressor).Compress", "github.com/twmb/franz-go/pkg/kgo.(*produceRequest).AppendTo"),
		stack(30, "joinbench/pipeline.(*rows).match", "joinbench/pipeline.(*kafkaSink).Results", "joinbench/core.(*Engine).Run"),
		stack(70, "runtime.scanObject", "runtime.gcDrain", "runtime.gcBgMarkWorker"),
		stack(300, "runtime.futex", "runtime.findRunnable", "runtime.schedule"),
	}}
	id := uint64(0)
	for _, s := range p.Sample {
		for _, l := range s.Location {
			id++
			l.ID, l.Line[0].Function.ID = id, id
			p.Location, p.Function = append(p.Location, l), append(p.Function, l.Line[0].Function)
		}
	}
	path := filepath.Join(t.TempDir(), "p")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := splitOf(path, 2000)
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]struct {
		got  *float64
		want float64
	}{"json": {s.JSONNs, 200}, "decode": {s.DecodeNs, 400}, "socket": {s.SocketNs, 100}, "core": {s.CoreNs, 420}, "produce": {s.ProduceNs, 140},
		"gc": {s.GCNs, 140}, "other": {s.OtherNs, 600}, "cpu": {s.CPUNs, 2000}} {
		if part.got == nil || *part.got < part.want-1e-6 || *part.got > part.want+1e-6 {
			t.Errorf("%s: %v, want %v", name, results.KafkaSplit(*s), part.want)
		}
	}
}
