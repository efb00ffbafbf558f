package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/loadgen"
	"joinbench/projection"
)

// outputJudge holds records of an output topic against the truth. Which records a result is about its headers say (rule 23); that it
// says of them what it should, the line shows that is made of these records here.
type outputJudge struct {
	*verify
	verifier *loadgen.Verifier
	w        *loadgen.Writer
	decoders [2]*projection.Decoder
	rows     [2]projection.Rows
	values   [2][]byte
	bodies   [2][]byte
	made     [2]bool
	lines    lines
	line     []byte

	// Lines that correct a null row wait until all was read: the row may lie in another partition (rule 17).
	held []heldLine
	// tombstones are those of each A, and how many lines wanted them.
	tombstones map[int64]int
	altered    int64
	records    int64
	examples   map[string][]VerifyExample
}

// heldLine is a pair or a group that corrects.
type heldLine struct {
	line  resultLine
	where recordPlace
}

// recordPlace is where a record lies, and what it is keyed by.
type recordPlace struct {
	partition int32
	offset    int64
	key       string
}

const (
	headerA = "a"
	headerB = "b"
)

func newOutputJudge(v *verify) *outputJudge {
	j := &outputJudge{verify: v, verifier: v.truth.NewVerifier(), w: v.gen.NewWriter(), lines: lines{spec: v.c.spec, key: v.c.key},
		tombstones: map[int64]int{}, examples: map[string][]VerifyExample{}}
	for s, spec := range v.c.spec {
		j.decoders[s], j.values[s] = spec.NewDecoder(), make([]byte, v.gen.Config().RecordBytes)
	}
	return j
}

// take judges one record.
func (j *outputJudge) take(r *kafka.Record) error {
	j.records++
	where := recordPlace{r.Partition, r.Offset, string(r.Key)}
	l, ok := j.read(r)
	switch {
	case !ok:
		j.altered++
		j.example("spurious", where, "its headers do not say which records it is about")
	case r.Value == nil:
		j.takeTombstone(r, l.i, where)
	case l.i < 0 && l.kind != lineNullB || l.j < 0 && l.kind == linePair || slices.ContainsFunc(l.group.B, unknown) || l.kind == lineNullB && l.j < 0:
		j.tell(&l, where) // the verifier counts it: no such record counts
	case !j.says(r, &l):
		j.altered++
		j.example("spurious", where, "it does not say what the records say: "+cutText(r.Value))
	case l.says&loadgen.Corrects != 0:
		j.held = append(j.held, heldLine{l, where})
	default:
		j.tell(&l, where)
	}
	return nil
}

func unknown(index int64) bool { return index < 0 }

// read finds which records a result is about.
func (j *outputJudge) read(r *kafka.Record) (l resultLine, ok bool) {
	l.i, l.j = -1, -1
	var b []int64
	hasA := false
	for _, h := range r.Headers {
		switch h.Key {
		case headerA:
			i, ok := j.source(core.A, string(h.Value))
			if !ok || hasA {
				return l, false
			}
			l.i, hasA = i, true
		case headerB: // of a group one for each B
			i, ok := j.source(core.B, string(h.Value))
			if !ok {
				return l, false
			}
			b = append(b, i)
		}
	}
	switch {
	case hasA && len(b) == 0:
		l.kind = lineNullA
	case hasA && j.truth.Rules().Collect != loadgen.Eager:
		l.kind, l.group = lineGroup, loadgen.Group{A: l.i, B: b}
	case hasA && len(b) == 1:
		l.kind, l.j = linePair, b[0]
	case !hasA && len(b) == 1:
		l.kind, l.j = lineNullB, b[0]
	default:
		return l, false
	}
	return l, r.Value != nil || l.i >= 0 || hasA
}

// source reads topic/partition/offset. The record is -1 if there is none that counts, as of an aborted transaction.
func (j *outputJudge) source(side core.Side, text string) (index int64, ok bool) {
	topic, part, offset, ok := headerPlace(text)
	if !ok {
		return -1, false
	}
	if p := j.places[side]; topic == p.topic {
		return p.index(part, offset), true
	}
	return -1, true
}

// headerPlace reads the place of a record in a header.
func headerPlace(text string) (topic string, part int32, offset int64, ok bool) {
	rest, offsetText, ok1 := cutLast(text)
	topic, partText, ok2 := cutLast(rest)
	n, err1 := strconv.ParseInt(partText, 10, 32)
	offset, err2 := strconv.ParseInt(offsetText, 10, 64)
	return topic, int32(n), offset, ok1 && ok2 && err1 == nil && err2 == nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// put makes a record in j.values.
func (j *outputJudge) put(side core.Side, index int64) (key []byte, time int64) {
	again := j.made[side]
	j.made[side] = true
	return putRecord(j.w, side, j.values[side], index, again)
}

// event makes what a result shows of a record.
func (j *outputJudge) event(side core.Side, index int64) event {
	key, at := j.put(side, index)
	rows := &j.rows[side]
	rows.Reset()
	j.decoders[side].Append(rows, &projection.Record{Key: key, Value: j.values[side], Timestamp: at})
	return event{key: rows.Key(0), time: rows.Time[0], body: rows.BodyOf(0)}
}

// says makes the line that the records give, in each form that it may have, and finds which one the result has. It notes in l what the
// form says.
func (j *outputJudge) says(r *kafka.Record, l *resultLine) bool {
	value := bytes.TrimSuffix(r.Value, []byte("\n"))
	is := func() bool { return bytes.Equal(value, bytes.TrimSuffix(j.line, []byte("\n"))) }
	switch l.kind {
	case lineNullA:
		a := j.event(core.A, l.i)
		j.line = j.lines.null(j.line[:0], core.A, &a)
		return is() && j.keyed(r, &a, nil)
	case lineNullB:
		b := j.event(core.B, l.j)
		j.line = j.lines.null(j.line[:0], core.B, &b)
		return is() && j.keyed(r, nil, &b)
	case linePair:
		a, b := j.event(core.A, l.i), j.event(core.B, l.j)
		if !j.keyed(r, &a, &b) {
			return false
		}
		for _, corrected := range []bool{false, true} {
			if j.line = j.lines.pair(j.line[:0], &a, &b, corrected); is() {
				if corrected {
					l.says = loadgen.Corrects
				}
				return true
			}
		}
		return false
	}
	return j.saysGroup(r, l, is)
}

// keyed says whether a record has the key that a row of these events has: the bytes of a string, the text of a number.
func (j *outputJudge) keyed(r *kafka.Record, a, b *event) bool {
	var out [2][]byte
	joinKey := []byte(nil)
	for s, e := range []*event{a, b} {
		if e != nil {
			j.bodies[s] = j.c.spec[s].AppendOutput(j.bodies[s][:0], e.body)
			out[s], joinKey = j.bodies[s], e.key
		}
	}
	key := j.c.key.of(nil, joinKey, out)
	var text string
	if json.Unmarshal(key, &text) == nil {
		key = []byte(text)
	}
	return bytes.Equal(r.Key, key)
}

func (j *outputJudge) saysGroup(r *kafka.Record, l *resultLine, is func() bool) bool {
	a := j.event(core.A, l.i)
	if !j.keyed(r, &a, nil) {
		return false
	}
	last := int64(0)
	for _, b := range l.group.B {
		last = max(last, j.gen.TimeB(b))
	}
	j.line = j.lines.groupHead(j.line[:0], &a, last)
	for n, b := range l.group.B {
		e := j.event(core.B, b)
		j.line = j.lines.groupItem(j.line, n, e.body)
	}
	head := len(j.line)
	g := core.Group{B: make([][]byte, len(l.group.B))}
	if j.truth.Rules().Collect == loadgen.Count {
		g.Wanted = uint32(j.gen.LineCount(l.i))
	}
	for _, complete := range []bool{false, true} {
		for _, kind := range []core.MatchKind{0, core.Corrected} {
			g.Complete, g.Kind = complete, kind
			if j.line = j.lines.groupTail(j.line[:head], &g); is() {
				l.group.Complete, l.group.Wanted = complete, g.Wanted
				l.says = saysOf(kind)
				return true
			}
		}
	}
	return false
}

// takeTombstone notes what takes back the null row of an A.
func (j *outputJudge) takeTombstone(r *kafka.Record, i int64, where recordPlace) {
	if i >= 0 && j.truth.Rules().Retract {
		if a := j.event(core.A, i); j.keyed(r, &a, nil) {
			j.tombstones[i]++
			return
		}
	}
	j.altered++
	j.example("spurious", where, "a tombstone that takes nothing back")
}

// tell hands a line to the verifier, and keeps it as an example if it is wrong.
func (j *outputJudge) tell(l *resultLine, where recordPlace) {
	spurious, duplicated := j.verifier.Wrong()
	l.group.Says = l.says
	l.tell(j.verifier)
	switch s, d := j.verifier.Wrong(); {
	case s > spurious:
		j.example("spurious", where, j.describe(l))
	case d > duplicated:
		j.example("duplicated", where, j.describe(l))
	}
}

// finish judges the lines that waited for others.
func (j *outputJudge) finish() {
	wanted := map[int64]int{}
	for _, h := range j.held {
		if j.truth.Rules().Retract && j.tombstones[h.line.i] > 0 {
			h.line.says |= loadgen.Retracts
			wanted[h.line.i]++
		}
		j.tell(&h.line, h.where)
	}
	j.held = nil
	for i, n := range j.tombstones {
		switch w := wanted[i]; {
		case w == 0:
			j.altered += int64(n)
			j.example("spurious", j.nowhere(core.A, i), fmt.Sprintf("a tombstone for A %d, which no pair corrects", i))
		case n > w:
			j.again += int64(n - w)
			j.example("duplicated", j.nowhere(core.A, i), fmt.Sprintf("the tombstone for A %d", i))
		}
	}
}

// nowhere is the place of what is about a record and lies at none.
func (j *outputJudge) nowhere(side core.Side, index int64) recordPlace {
	key, _ := j.put(side, index)
	return recordPlace{key: string(key), offset: -1}
}

// describe says in words which records a line is about.
func (j *outputJudge) describe(l *resultLine) string {
	name := func(side core.Side, i int64) string {
		if i < 0 {
			return "a record that does not count (aborted, or none of the workload)"
		}
		p, offset := j.gen.PlaceA(i)
		if side == core.B {
			p, offset = j.gen.PlaceB(i)
		}
		return fmt.Sprintf("%c %d (partition %d, record %d)", "AB"[side], i, p, offset)
	}
	switch l.kind {
	case linePair:
		text := name(core.A, l.i) + " with " + name(core.B, l.j)
		if l.j >= 0 {
			text += ", which is " + j.gen.KindB(l.j).String()
		}
		return "pair of " + text
	case lineNullA:
		return "null row of " + name(core.A, l.i)
	case lineNullB:
		return "null row of " + name(core.B, l.j)
	}
	return fmt.Sprintf("group of %s with %d B", name(core.A, l.i), len(l.group.B))
}

func cutText(b []byte) string {
	const most = 200
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
