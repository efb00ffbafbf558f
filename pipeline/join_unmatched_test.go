package pipeline

import (
	"context"
	"fmt"
	"testing"

	"joinbench/internal/oracle"
)

// TestUnmatchedEqualsOracle: of every accepted event the result lines or the unmatched file speak, and never both; the
// other side files hold each record of their fates once.
func TestUnmatchedEqualsOracle(t *testing.T) {
	n := 24
	if testing.Short() {
		n = 15
	}
	all := variants()
	for i := range n {
		seed := *oracleSeed + 1000 + uint64(i)
		for c, cardinality := range []string{oracle.OneToOne, oracle.OneToMany} {
			v := all[(2*i+c)*variantStride%len(all)]
			t.Run(fmt.Sprintf("seed=%d/%s", seed, cardinality), func(t *testing.T) {
				s := newScene(t, seed, cardinality, v)
				stats, err := Join(context.Background(), s.join("run", v))
				if err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				lines, unmatched := s.lines(s.path("run-out")), s.lines(s.path("run-unmatched"))
				if err := s.want.CheckReachable(lines); err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				if err := s.want.CheckUnmatched(lines, unmatched, s.topicA(), s.topicB()); err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				if got := stats.UnmatchedA + stats.UnmatchedB; got != int64(len(unmatched)) {
					t.Errorf("%s: %d unmatched counted, %d in the file", v, got, len(unmatched))
				}
				a, b := s.want.CountersA, s.want.CountersB
				if got, want := len(s.lines(s.path("run-late"))), a.Late+b.Late; int64(got) != want {
					t.Errorf("%s: %d lines in the late file, want %d", v, got, want)
				}
				if got, want := len(s.lines(s.path("run-dead"))), a.Malformed+a.BadKey+a.BadTime+b.Malformed+b.BadKey+b.BadTime; int64(got) != want {
					t.Errorf("%s: %d lines in the dead file, want %d", v, got, want)
				}
				checkFates(t, v, "a", &stats.A, a)
				checkFates(t, v, "b", &stats.B, b)
			})
		}
	}
}
