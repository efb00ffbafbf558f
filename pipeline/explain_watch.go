package pipeline

import (
	"bytes"
	"fmt"
	"strings"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/core"
	"joinbench/projection"
)

// explainer stands around the parts of a join of files: it is the engine's source, in front of the feed; its sink, in front of a
// fileSink that gets what concerns the key and nothing else; and its Watcher. So it knows what the join did, and decides nothing.
type explainer struct {
	*feed
	key, text []byte // the typed key, and its text
	out       *Explanation
	places    map[place]*ExplainedEvent // of accepted events
	pending   []*ExplainedEvent         // read and not taken
	live      []*ExplainedEvent         // that wait
	batch     uint64
	wm        [2]int64
	last      lastBatch
	shown     *fileSink
	written   [4]bytes.Buffer
	near      nearKeys
}

// place is what a state knows an event by.
type place struct {
	side      core.Side
	partition int32
	offset    int64
}

// lastBatch is what takes effect when a batch is committed.
type lastBatch struct {
	to     [2]core.Bounds
	limits [2]core.Limits
	any    bool
}

// between puts the explainer between the engine, and feed and sink.
func (x *explainer) between(j *fileJoin) (core.Source, core.Sink) {
	x.feed = j.feed
	x.out.topics = j.sink.topics
	x.shown = plainSink(j.c, j.sink.topics)
	for i := range x.shown.files {
		x.shown.files[i].w = capture.NewWriter(&x.written[i], "memory")
	}
	return x, x
}

var writtenNames = [4]string{toResults: "results", toLate: "late", toDead: "dead", toUnmatched: "unmatched"}

// render has the sink write an output and gives the lines.
func (x *explainer) render(out core.Output) (lines []ExplainedLine, err error) {
	if err := x.shown.Results(&out); err != nil {
		return nil, err
	}
	for i := range x.written {
		if err := x.shown.files[i].w.Flush(); err != nil {
			return nil, err
		}
		for line := range strings.Lines(x.written[i].String()) {
			lines = append(lines, ExplainedLine{writtenNames[i], strings.TrimSuffix(line, "\n")})
		}
		x.written[i].Reset()
	}
	return lines, nil
}

// Next implements core.Source: it looks at what is read.
func (x *explainer) Next(side core.Side, part int) (*core.Chunk, error) {
	c, err := x.feed.Next(side, part)
	if c == nil || err != nil {
		return c, err
	}
	for row := range uint32(c.N) {
		r := core.Ref{Chunk: c, Row: row}
		switch key := c.Key(row); {
		case bytes.Equal(key, x.key), len(key) == 0 && mentions(record(r), x.text):
			x.note(r)
		case len(x.out.Events) == 0:
			x.near.add(key, x.key)
		}
	}
	return c, nil
}

// note adds an event.
func (x *explainer) note(r core.Ref) {
	c, rec := r.Chunk, record(r)
	e := &ExplainedEvent{Side: c.Side, Partition: c.Partition, Offset: rec.Offset, Line: rec.Place, Fate: c.Fate[r.Row], Time: c.Time[r.Row], part: c.Part, at: r}
	e.ID = fmt.Sprintf("%s %s/%d@%d", c.Side, x.out.topics[c.Side], e.Partition, e.Offset)
	x.out.Events = append(x.out.Events, e)
	x.pending = append(x.pending, e)
}

// step adds a step to an event.
func (x *explainer) step(e *ExplainedEvent, name string, rule int, text string, with ...*ExplainedEvent) *ExplainStep {
	s := &ExplainStep{Event: e, Batch: x.batch, Step: name, Rule: rule, With: with, Text: text, WM: x.wm}
	e.Steps = append(e.Steps, s)
	x.out.Steps = append(x.out.Steps, s)
	return s
}

// Taken implements core.Watcher.
func (x *explainer) Taken(t *core.Taken) {
	x.settle()
	x.batch, x.wm = t.Batch, t.Watermarks
	x.last = lastBatch{t.To, t.Limits, true}
	if len(x.pending) == 0 {
		return
	}
	refused, over := map[core.Ref]core.Reject{}, map[core.Ref]bool{}
	for _, list := range [][]core.Reject{t.Rejects, t.NullKeys} {
		for _, r := range list {
			refused[r.Ref] = r
		}
	}
	for _, r := range t.Over {
		over[r] = true
	}
	rest := x.pending[:0]
	for _, e := range x.pending {
		next := t.Next(e.Side, e.part)
		if next.Chunk == e.at.Chunk && e.at.Row >= next.Row {
			x.hold(e, &next)
			rest = append(rest, e)
			continue
		}
		x.take(t, e, refused, over[e.at])
		e.at = core.Ref{} // the chunk will be used again
	}
	x.pending = rest
}

// hold notes why an event was not taken.
func (x *explainer) hold(e *ExplainedEvent, next *core.Held) {
	if next.Why == core.HoldNone || next.Why == core.HoldFull {
		return
	}
	if e.heldFrom == 0 {
		e.heldFrom, e.hold = x.batch, *next
		if next.Row != e.at.Row {
			o := next.Chunk.Offset[next.Row]
			e.behind = &o
		}
		e.hold.Chunk = nil
	}
	e.heldTo = x.batch
}

// take says what became of an event that the gate has passed.
func (x *explainer) take(t *core.Taken, e *ExplainedEvent, refused map[core.Ref]core.Reject, over bool) {
	e.known = true
	x.sayHeld(e)
	if r, is := refused[e.at]; is {
		e.Fate = r.Fate
		s := x.step(e, "refused", ruleOfFate[r.Fate], x.whyRefused(e, &r))
		out := core.Output{Rejects: []core.Reject{r}}
		if r.Fate == core.NullKey {
			out = core.Output{NullKeys: out.Rejects}
		}
		s.Output, _ = x.render(out) // into memory
		return
	}
	x.places[place{e.Side, e.Partition, e.Offset}] = e
	e.over = over || t.IsOver(e.at)
	waits := (e.Side == core.A || x.out.cfg.Probe == core.ProbeWait) && !e.over
	if x.asks(e) {
		x.step(e, "asked", 12, x.whyAsked(e))
	}
	switch {
	case waits:
		e.waits, e.epoch = true, t.EpochOf(e.at)
		x.live = append(x.live, e)
		if e.said = x.out.cfg.Probe != core.ProbeWait; e.said { // else it asks first, and may not have to wait
			x.step(e, "waits", 10, x.whyWaits(e))
		}
	case e.over:
		x.step(e, "closed", 10, "its time was over when it came: it waits nowhere")
	}
}

// asks says whether an event asks for others.
func (x *explainer) asks(e *ExplainedEvent) bool {
	return e.Side == core.B || x.out.cfg.Probe == core.ProbeWait
}

// settle says what the last batch's end has done to those that wait.
func (x *explainer) settle() {
	if !x.last.any {
		return
	}
	rest := x.live[:0]
	for _, e := range x.live {
		if !e.waits {
			continue
		}
		if !e.said {
			e.said = true
			x.step(e, "waits", 10, x.whyWaits(e))
		}
		if e.Time < x.last.limits[e.Side].Closed {
			e.waits = false
			x.step(e, "closed", 10, x.whyClosed(e))
			continue
		}
		if !e.sealed && e.epoch < x.last.to[e.Side].Sealable {
			e.sealed = true
			x.step(e, "sealed", 11, fmt.Sprintf("its bucket is sealed: WM_%s − G = %s is at its end", upper(e.Side), timeText(x.wm[e.Side]-x.out.cfg.Grace)))
		}
		rest = append(rest, e)
	}
	x.live = rest
	x.last.any = false
}

// event is the event of an entry, nil if it is of another key.
func (x *explainer) event(entry []byte) (*ExplainedEvent, *buckets.Entry, error) {
	e, err := buckets.ParseEntry(entry)
	if err != nil {
		return nil, nil, err
	}
	side := core.A
	if e.SideB {
		side = core.B
	}
	return x.places[place{side, e.Partition, e.Offset}], &e, nil
}

// eventAt is the event of a row, nil if it is of another key.
func (x *explainer) eventAt(r core.Ref) *ExplainedEvent {
	return x.places[place{r.Chunk.Side, r.Chunk.Partition, r.Chunk.Offset[r.Row]}]
}

// Met implements core.Watcher: what no result tells is a B that a group collects, and an end.
func (x *explainer) Met(asks core.Ref, entry []byte) {
	b := x.eventAt(asks)
	if b == nil {
		return
	}
	a, _, err := x.event(entry)
	if err != nil || a == nil {
		return // the join will say it
	}
	a.with, b.with = append(a.with, b), append(b.with, a)
	cfg := &x.out.cfg
	ends := cfg.CompleteOn != core.EndNever && asks.Chunk.FlagsOf(asks.Row)&core.Ends != 0
	if cfg.Collect != core.CollectEager && (!ends || cfg.CompleteOn == core.EndPair) {
		x.step(b, "collected", 19, "collected with "+a.ID, a)
		x.step(a, "collected", 19, "collects "+b.ID+", "+x.distance(b, a), b)
	}
	if ends {
		x.step(b, "end", 18, "ends "+a.ID+" (complete_on)", a)
		x.step(a, "end", 18, "ended by "+b.ID+" (complete_on)", b)
		a.ended, a.waits = true, false
	}
}

// mentions says whether a record that has no key has its text: as a word, and not as the name of a field.
func mentions(rec *projection.Record, text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if bytes.Equal(rec.Key, text) {
		return true
	}
	word := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
	}
	for v, from := rec.Value, 0; ; from++ {
		i := bytes.Index(v[from:], text)
		if i < 0 {
			return false
		}
		from += i
		end := from + len(text)
		if from > 0 && word(v[from-1]) && word(text[0]) || end < len(v) && word(v[end]) && word(text[len(text)-1]) {
			continue
		}
		rest := bytes.TrimLeft(bytes.TrimLeft(v[end:], "\\"), "\"")
		if name := len(rest) < len(v)-end && bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte(":")); !name {
			return true
		}
	}
}
