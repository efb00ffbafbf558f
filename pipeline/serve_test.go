package pipeline

import (
	"testing"
)

// TestServe: what comes out of topics is what the oracle says, in either delivery.
func TestServe(t *testing.T) {
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		for seed := range uint64(3) {
			t.Run(delivery, func(t *testing.T) {
				s := newServeScene(t, *oracleSeed+seed, delivery)
				counts, err := Serve(t.Context(), s.serve())
				if err != nil {
					t.Fatal(err)
				}
				s.check(counts)
			})
		}
	}
}
