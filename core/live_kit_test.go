package core

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"joinbench/buckets"
)

// liveScript is a script whose records come at moments of a clock that passes only while the engine waits: so nothing depends on the
// machine. Where it has nothing left it says so for ever, unless its partitions end.
type liveScript struct {
	*script
	clock *int64
	comes [2][][]int64 // by side and partition: when each record is there, ascending
	ends  bool         // a partition ends with its last record
	until int64        // the engine is stopped when it would wait beyond
	waits []int64      // when the engine waited
	trace func()       // called in each wait
	work  func()       // called before each batch for which it does not wait
}

// errUntil ends the run of an engine that has nothing more to do before liveScript.until.
var errUntil = errors.New("the script is over")

// newLive makes a live script. Record i of a partition comes at comes[side][partition][i].
func newLive(t testing.TB, a, b []scriptPart, comes [2][][]int64) *liveScript {
	return &liveScript{script: newScript(t, 1<<20, a, b), clock: new(int64), comes: comes, until: 1 << 40}
}

// asTheyAre has each record come at its own event time.
func asTheyAre(a, b []scriptPart) (comes [2][][]int64) {
	for s, side := range [2][]scriptPart{a, b} {
		for _, p := range side {
			var at []int64
			for _, e := range p.events {
				at = append(at, e.time)
			}
			comes[s] = append(comes[s], at)
		}
	}
	return comes
}

// again is the same script for another engine, at the same moment.
func (l *liveScript) again() *liveScript {
	n := *l
	n.script, n.waits = l.script.again(), nil
	return &n
}

func (l *liveScript) Next(side Side, part int) (*Chunk, error) {
	at := l.at[side][part]
	rows := l.parts[side][part].events
	if at == len(rows) && l.ends {
		return nil, nil
	}
	n := 0
	for at+n < len(rows) && l.comes[side][part][at+n] <= *l.clock {
		n++
	}
	if n == 0 {
		return nil, ErrNotYet
	}
	l.chunk = n
	return l.script.Next(side, part)
}

func (l *liveScript) Await(ctx context.Context, idle bool, most time.Duration) error {
	if !idle || ctx.Err() != nil {
		if l.work != nil {
			l.work()
		}
		return ctx.Err()
	}
	deadline := *l.clock + most.Milliseconds()
	if l.trace != nil {
		l.trace()
	}
	l.waits = append(l.waits, *l.clock)
	next := int64(1 << 50)
	for s := range l.parts {
		for i, p := range l.parts[s] {
			if at := l.at[s][i]; at < len(p.events) {
				if c := l.comes[s][i][at]; c > *l.clock {
					next = min(next, c)
				}
			}
		}
	}
	if most >= 0 {
		next = min(next, max(*l.clock, deadline))
	}
	if next > l.until {
		return errUntil
	}
	*l.clock = next
	return nil
}

// config gives the join the script's clock.
func (l *liveScript) config(c Config) *Config {
	c.Now = func() int64 { return *l.clock }
	c.Inline = true
	return &c
}

// live runs an engine over a live script until it says stop.
func live(t testing.TB, cfg *Config, stores []buckets.Backend, src *liveScript, sink *joined, until int64) *Engine {
	t.Helper()
	src.until = until
	e := open(t, cfg, stores, src, sink)
	if err := e.Run(context.Background()); !errors.Is(err, errUntil) {
		t.Fatalf("run: %v", err)
	}
	return e
}

// whenOut notes at which moment of the clock each unmatched A came out.
func whenOut(src *liveScript, sink *joined) map[string]int64 {
	at := map[string]int64{}
	sink.fail = func(int, *Output) error {
		for _, id := range slices.Concat(sink.unmatchedA, sink.unmatchedB) {
			if _, ok := at[id]; !ok {
				at[id] = *src.clock
			}
		}
		return nil
	}
	return at
}
