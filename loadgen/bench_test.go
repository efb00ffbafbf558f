package loadgen

import (
	"syscall"
	"testing"
	"time"
)

// benchGen is the reference case: 5 million pending, 4 h window, 1 % matches.
func benchGen(b *testing.B, plain bool) *Gen {
	c := Config{Seed: 1, Pending: 5_000_000, BEvents: 10_000_000, MatchRate: 0.01, RecordBytes: 256,
		Grace: 10 * time.Second, Disorder: 2 * time.Second, After: 4 * time.Hour, PartitionsA: 4, PartitionsB: 4}
	if !plain {
		c.Duplicates, c.Expired, c.LateShareA, c.LateShareB = 0.001, 0.001, 0.01, 0.01
	}
	return mustNew(b, c)
}

// mixes are the reference case with B that match or not, and with all that may be amiss.
func mixes(b *testing.B, run func(b *testing.B, g *Gen)) {
	b.Run("mix=plain", func(b *testing.B) { run(b, benchGen(b, true)) })
	b.Run("mix=all", func(b *testing.B) { run(b, benchGen(b, false)) })
}

// cpuTime reports the processor time of what was run since, per operation: on a machine that
// others use too it is steadier than wall time.
func cpuTime(b *testing.B) (report func()) {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkRecordB(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		key, value := make([]byte, 0, 64), make([]byte, 0, 512)
		b.SetBytes(256)
		j := int64(0)
		defer cpuTime(b)()
		for b.Loop() {
			g.RecordB(key, value, j)
			if j++; j == g.nB {
				j = 0
			}
		}
	})
}

func BenchmarkRecordA(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		key, value := make([]byte, 0, 64), make([]byte, 0, 512)
		b.SetBytes(256)
		i := int64(0)
		defer cpuTime(b)()
		for b.Loop() {
			g.RecordA(key, value, i)
			if i++; i == g.nA {
				i = 0
			}
		}
	})
}

func BenchmarkAppendA(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		value := make([]byte, 0, 512)
		i := int64(0)
		for b.Loop() {
			g.AppendA(value, i)
			if i++; i == g.nA {
				i = 0
			}
		}
	})
}

func BenchmarkAppendB(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		value := make([]byte, 0, 512)
		j := int64(0)
		for b.Loop() {
			g.AppendB(value, j)
			if j++; j == g.nB {
				j = 0
			}
		}
	})
}

func BenchmarkExpected(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		j := int64(0)
		for b.Loop() {
			g.Expected(j)
			if j++; j == g.nB {
				j = 0
			}
		}
	})
}

func BenchmarkPartnerOf(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		i := int64(0)
		for b.Loop() {
			g.PartnerOf(i)
			if i++; i == g.nA {
				i = 0
			}
		}
	})
}

// BenchmarkExpectedMatches counts all pairs of 10 million B; the truth of a run is ready
// after that time.
func BenchmarkExpectedMatches(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		var n int64
		for b.Loop() {
			n = g.ExpectedIn(0, g.nB)
		}
		b.ReportMetric(float64(n), "matches")
	})
}

func BenchmarkVerifierMatch(b *testing.B) {
	g := benchGen(b, true)
	v := g.NewVerifier()
	k, end := uint64(0), g.b.matched.count(uint64(g.nB))
	for b.Loop() {
		j := g.slotB(k%end, 0)
		i, _ := g.pair(k%end, 0)
		v.Match(j, i)
		k++
	}
}

// BenchmarkPut is what a run does for each record: values of 1 KB, one after the other.
func BenchmarkPut(b *testing.B) {
	mixes(b, func(b *testing.B, g *Gen) {
		for _, side := range []string{"a", "b"} {
			b.Run("side="+side, func(b *testing.B) {
				w, value := g.NewWriter(), make([]byte, g.cfg.RecordBytes)
				x := int64(0)
				defer cpuTime(b)()
				for b.Loop() {
					if side == "a" {
						w.PutA(value, x%g.nA, x > 0)
					} else {
						w.PutB(value, x%g.nB, x > 0)
					}
					x += 4 // of one partition
				}
			})
		}
	})
}
