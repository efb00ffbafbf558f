package pipeline

import (
	"testing"
	"time"

	"joinbench/results"
)

// TestSamplesOfAnyLength: a run of any length leaves at most maxSamples, which hold all that happened.
func TestSamplesOfAnyLength(t *testing.T) {
	s := newSamples(false)
	start := time.Now()
	s.last = reading{at: start}
	var probes, lookups uint64
	phases := map[string]time.Duration{}
	end := map[string]time.Duration{"prepare": 3 * time.Second, "settle": 4 * time.Second, "measure": 3 * time.Hour, "drain": 3*time.Hour + 2*time.Second}
	at := time.Duration(0)
	for _, phase := range []string{"prepare", "settle", "measure", "drain"} {
		for ; at < end[phase]; at += 50 * time.Millisecond {
			now := reading{at: start.Add(at)}
			if !s.due(now) {
				continue
			}
			took := now.at.Sub(s.last.at)
			one := sample{at: at, took: took, phase: phase, probes: uint64(took), lookups: uint64(took) / 100, readA: uint64(took) / 10}
			one.levels[disk], one.levels[rss] = int64(at), int64(2*at-took) // the average of what rises by 2 a ns
			phases[phase] += took
			probes += one.probes
			lookups += one.lookups
			s.add(one, now)
		}
	}
	list := s.intervals()
	if len(list) > maxSamples || len(list) < maxSamples/3 {
		t.Errorf("%d samples", len(list))
	}
	var sum, looked float64
	from := int64(0)
	got := map[string]time.Duration{}
	for i := range list {
		one := &list[i]
		if one.TNs <= from && i > 0 || *one.DiskBytes != one.TNs || max(*one.RSSBytes-one.TNs-from, one.TNs+from-*one.RSSBytes) > 100 {
			t.Fatalf("sample %d at %d after %d: %+v", i, one.TNs, from, one)
		}
		took := float64(one.TNs - from)
		sum += *one.ProbesPerS * took / 1e9
		looked += *one.LookupsPerProbe * *one.ProbesPerS * took / 1e9
		got[one.Phase] += time.Duration(took)
		if d := *one.APerS*10 - *one.ProbesPerS; d > 1e3 || d < -1e3 {
			t.Errorf("A %v, probes %v a second", *one.APerS, *one.ProbesPerS)
		}
		from = one.TNs
	}
	near := func(a, b float64) bool { return a > b*0.9999 && a < b*1.0001 }
	if !near(sum, float64(probes)) || !near(looked, float64(lookups)) {
		t.Errorf("%v probes and %v lookups of %d and %d", sum, looked, probes, lookups)
	}
	for phase, took := range phases {
		if got[phase] != took {
			t.Errorf("%s: %v of %v", phase, got[phase], took)
		}
	}
	fine := newSamples(true)
	fine.last = reading{at: start}
	if due := fine.due(reading{at: start.Add(fineEvery)}); !due || s.due(reading{at: s.last.at.Add(fineEvery)}) {
		t.Error("a resumed run is not looked at more closely, or each one is")
	}
}

// TestSteady: the warm-up counts for nothing, the longest gap is the longest, and what the engine waited is not its own.
func TestSteady(t *testing.T) {
	start := time.Now()
	m := &meter{started: start, from: reading{at: start.Add(10 * time.Second)}, to: reading{at: start.Add(210 * time.Second)}}
	for at := time.Duration(0); at < 215*time.Second; at += time.Second {
		one := sample{at: at, phase: "measure"}
		one.levels[disk], one.levels[rss] = 1000, 1_000_000
		switch {
		case at < 70*time.Second || at > 210*time.Second:
			one.levels[rss], one.levels[disk] = 5, 7 // before and after: not looked at
		default:
			one.levels[rss] += int64(at / time.Second * 10) // 1 % in 1,000 s
		}
		m.samples.list = append(m.samples.list, one)
	}
	ms := func(n int, waited int) reading {
		return reading{at: start.Add(time.Duration(n) * time.Millisecond), waited: time.Duration(waited) * time.Millisecond}
	}
	m.gaps.batch(ms(0, 0), ms(10, 3))
	m.gaps.batch(ms(10, 3), ms(110, 93))
	m.gaps.batch(ms(110, 93), ms(160, 93))
	s := m.steady()
	if s.MeasuredNs != 200e9 || s.WarmUpNs != 60e9 || s.Samples != 141 {
		t.Errorf("%+v", s)
	}
	if s.Disk.MinBytes != 1000 || s.Disk.MaxBytes != 1000 || s.RSS.MinBytes != 1_000_700 || *s.Disk.SlopePer10Min != 0 {
		t.Errorf("disk %+v, memory %+v", s.Disk, s.RSS)
	}
	if slope := *s.RSS.SlopePer10Min; slope < 0.00598 || slope > 0.00600 { // 6,000 of 1,001,400
		t.Errorf("slope %v", slope)
	}
	if s.MaxGapNs != 100e6 || s.MaxGapEngineNs != 10e6 || s.MaxEngineNs != 50e6 {
		t.Errorf("gaps %d, of it %d, %d", s.MaxGapNs, s.MaxGapEngineNs, s.MaxEngineNs)
	}
	if (&meter{started: start}).steady() != nil {
		t.Error("a run without a measured phase was steady")
	}
}

// TestRecoveryTimes: each is that of the first batch or sample after which it was so.
func TestRecoveryTimes(t *testing.T) {
	start := time.Now()
	at := func(ms int, probes uint64) reading {
		return reading{at: start.Add(time.Duration(ms) * time.Millisecond), probes: probes}
	}
	r := &recovery{started: start, opening: at(10, 0).at, opened: at(40, 0).at, begin: at(50, 1000), before: 0.01, missing: 3}
	if got := r.record(); got.ReadyNs != nil || got.FiltersReadyNs != nil || got.LookupsSettledNs != nil || got.Unfiltered != 3 {
		t.Errorf("before anything happened: %+v", got)
	}
	r.batch(at(60, 1000), 2) // only A
	r.batch(at(70, 1001), 1)
	r.sample(at(70, 1001), 1, 16)
	r.batch(at(80, 1500), 0)
	r.sample(at(90, 1500), 0, 0)
	r.sample(at(100, 2000), 1000, 13)
	r.batch(at(110, 2500), 0)
	r.sample(at(120, 3000), 1000, 12)
	r.sample(at(130, 4000), 1000, 9)
	got := r.record()
	want := results.Recovery{Unfiltered: 3, OpenNs: 30e6, OpenedNs: 40e6, EngineNs: 50e6, ReadyNs: new(int64(70e6)), ReadyAfterOpenNs: new(int64(30e6)),
		FiltersReadyNs: new(int64(80e6)), LookupsPerProbeBefore: &r.before, LookupsSettledNs: new(int64(120e6))}
	if got.OpenNs != want.OpenNs || got.OpenedNs != want.OpenedNs || got.EngineNs != want.EngineNs || *got.ReadyNs != *want.ReadyNs ||
		*got.ReadyAfterOpenNs != *want.ReadyAfterOpenNs || *got.FiltersReadyNs != *want.FiltersReadyNs ||
		*got.LookupsSettledNs != *want.LookupsSettledNs || *got.LookupsPerProbeBefore != 0.01 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestLooseTurns: while turns are loose nobody waits, and tight again the engine waits until all decoders rest.
func TestLooseTurns(t *testing.T) {
	turns := newTurns()
	turns.join() // busy, and stays so
	turns.loosen()
	if !turns.enter() {
		t.Fatal("stopped")
	}
	turns.begin()
	turns.end() // does not wait
	if !turns.enter() {
		t.Fatal("stopped")
	}
	turns.tighten()
	turns.begin()
	ended, entered := make(chan bool), make(chan bool)
	go func() { turns.end(); ended <- true }()
	select {
	case <-ended:
		t.Fatal("the turn ended while a decoder was busy")
	case <-time.After(20 * time.Millisecond):
	}
	turns.rest()
	<-ended
	go func() { entered <- turns.enter() }()
	select {
	case <-entered:
		t.Fatal("a decoder works out of its turn")
	case <-time.After(20 * time.Millisecond):
	}
	turns.stop()
	if <-entered {
		t.Error("stopped turns go on")
	}
}

// TestRepetitions: a phase is cut in ten, and nothing of it is lost or counted twice; one with too few samples is not cut.
func TestRepetitions(t *testing.T) {
	var s samples
	for i := range 37 {
		phase := "measure"
		if i < 4 {
			phase = "warm"
		}
		s.list = append(s.list, sample{phase: phase, took: time.Second, asking: time.Duration(i) * 100, probes: uint64(i), lookups: uint64(i) / 2})
	}
	reps := s.repetitions("measure")
	probes, ns := int64(0), 0.0
	for _, r := range reps {
		probes += r.Probes
		ns += *r.NsPerB * float64(r.Probes)
	}
	if len(reps) != 10 || probes != (4+36)*33/2 || ns < float64(probes)*100-1e-6 || ns > float64(probes)*100+1e-6 {
		t.Errorf("%d repetitions of %d B, %v ns", len(reps), probes, ns)
	}
	s.list = s.list[:12]
	if reps := s.repetitions("measure"); reps != nil {
		t.Errorf("%d repetitions of 8 samples", len(reps))
	}
}
