package oracle

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// How drafts become lines: payloads with their faults, envelopes, redelivery, the interleaving of partitions.

// placed is a line with what decides its place in the file.
type placed struct {
	text      string
	partition int32
	written   int64
}

// file writes one side.
func (w *workload) file(side string, s Side, drafts []draft) []byte {
	logs := w.partitioned(side, drafts)
	streams := map[int32][]placed{}
	for _, p := range w.partitions[side] {
		streams[p] = w.partitionLines(side, s, p, logs[p])
	}
	lines := w.interleave(w.partitions[side], streams)
	end := "\n"
	if w.crlf {
		end = "\r\n"
	}
	var out bytes.Buffer
	for i, l := range lines {
		out.WriteString(l.text)
		if i < len(lines)-1 || l.text == "" || w.chance(0.8) {
			out.WriteString(end)
		}
	}
	return out.Bytes()
}

// partitionLines writes one partition: its records with rising offsets, lines that are no records at all, and stretches
// that are read again.
func (w *workload) partitionLines(side string, s Side, partition int32, log []draft) []placed {
	var lines, again []placed
	offset := pick[int64](w, 0, 0, 1, 5_000_000_000)
	for _, d := range log {
		if w.chance(w.noise / 2) {
			lines = append(lines, placed{w.brokenLine(), partition, d.written})
		}
		r := w.raw(s, d)
		line := placed{w.line(side, partition, offset, r), partition, d.written}
		lines = append(lines, line)
		offset += pick[int64](w, 1, 1, 1, 2, 10)
		if utf8.ValidString(line.text) { // else the offset cannot be read, so nobody can know that it was there before
			again = append(again, line)
		}
		if w.format != "value" && w.chance(w.repeats) {
			for _, l := range again[len(again)-min(len(again), 1+w.rng.IntN(5)):] {
				lines = append(lines, placed{l.text, partition, d.written})
			}
		}
	}
	return lines
}

// interleave puts the partitions into one file: one after another, in turns, at random, or as they were written.
func (w *workload) interleave(numbers []int32, streams map[int32][]placed) []placed {
	order := slices.Clone(numbers)
	w.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	way := w.rng.IntN(4)
	var out []placed
	if way == 0 || way == 3 {
		for _, p := range order {
			out = append(out, streams[p]...)
		}
		if way == 3 {
			slices.SortStableFunc(out, func(x, y placed) int { return cmp.Compare(x.written, y.written) })
		}
		return out
	}
	for turn := 0; len(order) > 0; turn++ {
		i := turn % len(order)
		if way == 2 {
			i = w.rng.IntN(len(order))
		}
		p := order[i]
		if len(streams[p]) == 0 {
			order = slices.Delete(order, i, i+1)
			continue
		}
		out = append(out, streams[p][0])
		streams[p] = streams[p][1:]
	}
	return out
}

// rawRecord is a record whose texts are settled.
type rawRecord struct {
	key     *string
	ts      int64
	payload *string
}

// raw writes key, time and payload of a draft, each perhaps with a fault, so that several faults can meet in one record.
func (w *workload) raw(s Side, d draft) rawRecord {
	key, noKey := w.keyText(d.key), ""
	if w.chance(w.noise) {
		noKey = pick(w, "absent", "absent", "null", "null", "null", "true", "false", "{}", `{"k":"k1"}`, "[]", `["k1"]`)
		key = noKey
	}
	malformed := w.chance(w.noise)
	badKey := noKey != "" && noKey != "absent" && noKey != "null" && !slices.Contains(s.Key, "@key")
	switch {
	case (malformed || badKey) && w.chance(0.5):
		d.time += 3_600_000 // moves nothing, so those behind it are not late
	case noKey != "" && w.chance(0.5):
		d.time += w.cfg.Grace.Milliseconds() + w.tick // moves M, so those behind it may well be late
	}

	r := rawRecord{ts: d.time}
	o := &object{w: w}
	o.add("id", quote(d.id))
	w.addKey(o, &r, s, d, key)
	w.addTime(o, &r, s, d)
	w.addWatched(o)
	w.addRest(o)
	text := o.text()
	if malformed {
		text = w.broken(text)
	}
	r.payload = &text
	if w.format != "value" && w.chance(w.noise/2) {
		r.payload = nil
	}
	return r
}

// addKey puts the key's JSON text (or "absent") where the configuration looks for it. A record key is bytes and always the
// draft's own.
func (w *workload) addKey(o *object, r *rawRecord, s Side, d draft, json string) {
	where := s.Key[0]
	if len(s.Key) == 2 && w.chance(0.5) {
		where = s.Key[1] // the first path leads nowhere, so the second one counts
	} else if len(s.Key) == 2 && w.chance(0.5) { // both lead somewhere, so the first one counts
		decoy := pick(w, w.keys...)
		if s.Key[1] == "@key" {
			r.key = &decoy.Text
		} else {
			o.add(strings.TrimPrefix(s.Key[1], "$."), w.keyText(decoy))
		}
	}
	switch {
	case json == "absent":
	case where == "@key":
		if json != "null" {
			r.key = &d.key.Text
		}
	case where == "$.ref.id":
		o.add("ref", pick(w, `{"x":1,"id":`+json+`}`, `{"id":`+json+`,"id":"other"}`))
	case where == "$.list[1]":
		o.add("list", pick(w, `[0,`+json+`]`, `["k1",`+json+`,"k2"]`))
	case where == `$["odd.name"]`:
		o.add("odd.name", json)
	default:
		o.add(strings.TrimPrefix(where, "$."), json)
	}
}

func (w *workload) keyText(k Key) string {
	if k.Number {
		return k.Text
	}
	return w.quote(k.Text)
}

// addTime writes the event time; where the record time does not count it holds something else, and the other way round.
func (w *workload) addTime(o *object, r *rawRecord, s Side, d draft) {
	bad := w.chance(w.noise)
	if s.Time == "@timestamp" {
		if bad {
			r.ts = pick[int64](w, -1, -1, maxTime+1, 1<<63-1)
		}
		if w.chance(0.3) {
			o.add("ts", pick(w, "1", "null", `"never"`))
		}
		return
	}
	r.ts = pick(w, d.time, 0, -1, d.time+5000)
	text := w.timeText(s.TimeUnit, d.time)
	if bad {
		text = w.badTime(s.TimeUnit)
	}
	switch {
	case text == "": // absent
	case s.Time == "$.meta.at":
		o.add("meta", `{"at":`+text+`}`)
	default:
		o.add("ts", text)
	}
}

// timeText writes a time in its unit; what is finer than ms is to be cut.
func (w *workload) timeText(unit string, ms int64) string {
	switch unit {
	case "us":
		return strconv.FormatInt(ms*1000+w.rng.Int64N(1000), 10)
	case "ns":
		return strconv.FormatInt(ms*1_000_000+w.rng.Int64N(1_000_000), 10)
	case "s":
		return strconv.FormatInt(ms/1000, 10)
	case "rfc3339":
		t := time.UnixMilli(ms).Add(time.Duration(w.rng.Int64N(1_000_000)))
		t = t.In(time.FixedZone("", pick(w, 0, 0, 3600, -12600)))
		return quote(t.Format(pick(w, "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.999999999Z07:00")))
	default:
		return strconv.FormatInt(ms, 10)
	}
}

func (w *workload) badTime(unit string) string {
	if unit == "rfc3339" {
		return pick(w, "", "null", "1700000000000", `""`, `"yesterday"`, `"2023-13-01T00:00:00Z"`, `"2023-11-14"`, `"1969-12-31T23:59:50Z"`, `"10000-01-01T00:00:00Z"`)
	}
	afterLast := map[string]string{"ms": "253402300800000", "us": "253402300800000000", "ns": "253402300800000000000", "s": "253402300800"}[unit]
	return pick(w, "", "null", `"1700000000000"`, "1.5", "-5000000000", afterLast, afterLast, "99999999999999999999999999", "true", "{}", "[1]", `""`)
}

// addRest adds what the join does not need: fields to keep, and members that were there before under the same name.
func (w *workload) addRest(o *object) {
	if w.chance(0.7) {
		o.add("v", pick(w, "1", "12.50", "-0.0e+5", "null", "true", `""`, `"text"`, `"caf\u00e9 \ud83d\ude00"`, `"a\/b"`, `[1, 2 ,{"z" : [ ]}]`, `{ "v" : 1 }`, `"sp ace\t "`))
	}
	if w.chance(0.5) {
		o.add("w", pick(w, `{"x":7}`, `{"x":7,"x":8}`, `{"y":1}`, `{"x":{"x":[ ]}}`, "7", "null"))
	}
	if w.chance(0.5) {
		o.add("tags", pick(w, "[]", `["t1","t2"]`, `[null]`, `[{"k":"k1"}]`, `"t1"`))
	}
	w.rng.Shuffle(len(o.members), func(i, j int) { o.members[i], o.members[j] = o.members[j], o.members[i] })
	for range len(o.members) {
		if !w.chance(w.noise) {
			continue
		}
		first := w.rng.IntN(len(o.members))
		decoy := [2]string{o.members[first][0], pick(w, `"k1"`, "5", "null", "1700000000000", "{}", w.keyText(pick(w, w.keys...)))}
		o.members = slices.Insert(o.members, first+1+w.rng.IntN(len(o.members)-first), decoy)
	}
}

// object collects members as (name, JSON text).
type object struct {
	w       *workload
	members [][2]string
}

func (o *object) add(name, json string) { o.members = append(o.members, [2]string{name, json}) }

func (o *object) text() string {
	var parts []string
	for _, m := range o.members {
		name := quote(m[0])
		if o.w.chance(o.w.noise) {
			name = o.w.quote(m[0]) // an escaped name is the same name
		}
		parts = append(parts, o.w.space()+name+o.w.space()+":"+o.w.space()+m[1]+o.w.space())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// space is whitespace that means nothing. Line breaks can only be inside an envelope.
func (w *workload) space() string {
	if !w.spaces {
		return ""
	}
	if w.format == "value" {
		return pick(w, "", "", " ", "\t", "  ")
	}
	return pick(w, "", "", " ", "\t", "\n", "\r\n")
}

// quote prints a string in one of the many ways JSON has for it.
func (w *workload) quote(s string) string {
	if w.chance(0.6) {
		return quote(s)
	}
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // invalid UTF-8 stays as it is
			out.WriteString(s[i : i+1])
		case w.chance(0.3) && r > 0xffff:
			fmt.Fprintf(&out, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case w.chance(0.3) && r <= 0xffff:
			fmt.Fprintf(&out, pick(w, `\u%04x`, `\u%04X`), r)
		case r == '/' && w.chance(0.5):
			out.WriteString(`\/`)
		default:
			plain := quote(s[i : i+n])
			out.WriteString(plain[1 : len(plain)-1])
		}
		i += n
	}
	out.WriteByte('"')
	return out.String()
}

// broken turns a valid object into something that is not one whole valid JSON value.
func (w *workload) broken(object string) string {
	body := object[1:]
	bad := pick(w, `"\ud800"`, `"\udc00"`, `"\ud800\ud800\udc00"`, `"x\ud83dx"`, `"\uDBFF\u0041"`, "\"\xff\"", "\"\xed\xa0\x80\"", "\"\x01\"",
		"", "01", "+1", ".5", "1.", "tru", "NaN", "'x'", "[1,,2]", "[1,]", `"\x"`, `{"a"}`, `{a:1}`)
	return pick(w,
		object[:len(object)-1], object[:len(object)/2], object+" trailing", object+object, object+"}", "\ufeff"+object, body,
		`{"bad":`+bad+`,`+body, `{"bad":`+bad+`,`+body, `{"bad":`+bad+`,`+body, `{"deep":[{"bad":`+bad+`}],`+body,
		object[:len(object)-1]+`,"bad":`+bad+`}`, object[:len(object)-1]+`,"bad":`+bad+`}`, object[:len(object)-1]+`,"\ud800":1}`, object[:len(object)-1]+`,}`, "", " ")
}

// brokenLine is a line that is of no format at all.
func (w *workload) brokenLine() string {
	return pick(w, "", "", "   ", "\t", "not json", "{", `{"topic":"a","partition":0,"off`, "\xff\xfe", `{"k":"k1"`, "}{")
}

// line writes the record in the workload's format.
func (w *workload) line(side string, partition int32, offset int64, r rawRecord) string {
	null := func(s *string) string {
		if s == nil {
			return "null"
		}
		return w.quote(*s)
	}
	switch w.format {
	case "value":
		return *r.payload
	case "kcat":
		return fmt.Sprintf(`{"topic":"topic-%s","partition":%d,"offset":%d,"tstype":"create","ts":%d,"key":%s,"payload":%s}`,
			side, partition, offset, r.ts, null(r.key), null(r.payload))
	default:
		headers := pick(w, "", `,"headers":[]`, `,"headers":[{"key":"h","value":"x"}]`)
		return fmt.Sprintf(`{"topic":"topic-%s","key":%s,"value":%s%s,"timestamp":%d,"partition":%d,"offset":%d}`,
			side, null(r.key), null(r.payload), headers, r.ts, partition, offset)
	}
}
