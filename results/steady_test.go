package results

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestTheilSen(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
		ok   bool
	}{
		{nil, nil, 0, false},
		{[]float64{1}, []float64{1}, 0, false},
		{[]float64{1, 1}, []float64{1, 2}, 0, false},
		{[]float64{0, 2}, []float64{1, 5}, 2, true},
		{[]float64{0, 1, 2, 3}, []float64{7, 7, 7, 7}, 0, true},
		{[]float64{3, 1, 2, 0}, []float64{-3, -1, -2, 0}, -1, true}, // in any order
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, []float64{0, 2, 4, 1e9, 8, 10, -1e9, 14}, 2, true},
	} {
		if got, ok := TheilSen(c.x, c.y); got != c.want || ok != c.ok {
			t.Errorf("%v %v: %v %v, want %v", c.x, c.y, got, ok, c.want)
		}
	}
}

// TestLevelSeesALeakThroughTheSaw: memory swings by a twentieth as that of a process does; a leak of 2 % in ten minutes shows, and none does not.
func TestLevelSeesALeakThroughTheSaw(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, leak := range []float64{0, 0.02, -0.02} {
		var x, y []float64
		for i := range 500 {
			at := float64(i) + rnd.Float64()/2
			saw := math.Mod(at*1.7, 11) / 220
			x, y = append(x, at), append(y, 1e8*(1+saw+leak*at/600))
		}
		l := Level(x, y, true)
		if d := *l.SlopePer10Min - leak; d > 0.006 || d < -0.006 {
			t.Errorf("seed %d: slope %v of a leak of %v", seed, *l.SlopePer10Min, leak)
		}
		if l.MinBytes > l.MedianBytes || l.MedianBytes > l.MaxBytes || Level(x, y, false).SlopePer10Min != nil {
			t.Errorf("%+v", l)
		}
	}
	if l := Level([]float64{1, 2}, []float64{0, 0}, true); l.SlopePer10Min != nil {
		t.Errorf("a slope of nothing: %v", *l.SlopePer10Min)
	}
}

// TestSteadyIsShownOfLongRuns alone; a recovery always, and what did not come is said.
func TestSteadyIsShownOfLongRuns(t *testing.T) {
	rec := exampleRecord()
	for length, want := range map[int64]bool{59e9: false, 60e9: true} {
		rec.Steady.MeasuredNs = length
		if got := strings.Contains(string(render(t, rec, "text", TextOptions{})), "OVER TIME"); got != want {
			t.Errorf("measured %d ns: shown %v", length, got)
		}
	}
	rec.Recovery.FiltersReadyNs, rec.Recovery.LookupsSettledNs = nil, nil
	if text := string(render(t, rec, "text", TextOptions{})); strings.Count(text, "not before the run ended") != 2 {
		t.Errorf("what did not come is not said: %s", text)
	}
}
