package oracle

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// Key is a typed join key: a number is another key than the string of the same text (rule 4). Comparable with ==.
type Key struct {
	Number bool
	Text   string // decoded string, or number as written
}

// JSON prints the key as output lines have it.
func (k Key) JSON() string {
	if k.Number {
		return k.Text
	}
	return quote(k.Text)
}

// side is a Side whose paths are parsed.
type side struct {
	keys      []path // nil element = "@key"
	keyString bool
	time      path // nil = "@timestamp"
	unit      string
	keep      []path
	names     []string
}

func compile(s Side) (side, error) {
	c := side{keyString: s.KeyString, unit: s.TimeUnit}
	if len(s.Key) == 0 {
		return c, errors.New("no key")
	}
	for _, text := range s.Key {
		var p path
		var err error
		if text != "@key" {
			if p, err = parsePath(text); err != nil {
				return c, fmt.Errorf("key: %w", err)
			}
		}
		c.keys = append(c.keys, p)
	}
	if s.Time != "@timestamp" {
		var err error
		if c.time, err = parsePath(s.Time); err != nil {
			return c, fmt.Errorf("time: %w", err)
		}
	}
	if c.unit == "" || c.time == nil {
		c.unit = "ms"
	}
	if !strings.Contains(" ms us ns s rfc3339 ", " "+c.unit+" ") {
		return c, fmt.Errorf("unknown time unit %q", s.TimeUnit)
	}
	for _, f := range s.Keep {
		p, err := parsePath(f.Path)
		if err != nil {
			return c, fmt.Errorf("keep: %w", err)
		}
		if f.Name == "" {
			return c, fmt.Errorf("keep: %s has no name", f.Path)
		}
		c.keep = append(c.keep, p)
		c.names = append(c.names, f.Name)
	}
	return c, nil
}

// acceptedEvents reads a file and decides the one fate of each record, in the order of rule 9. Events come in file order,
// and so do the records that a side output gets.
func acceptedEvents(s Side, grace time.Duration, file []byte, format string) (events []*Event, refused []refusal, n Counters, err error) {
	spec, err := compile(s)
	if err != nil {
		return nil, nil, n, err
	}
	recs, err := records(file, format)
	if err != nil {
		return nil, nil, n, err
	}
	refuse := func(rec record, counter *int64, reason string) {
		*counter++
		refused = append(refused, refusal{rec, reason})
	}
	next := map[int32]int64{}     // the next offset of each partition that was seen (rule 3)
	greatest := map[int32]int64{} // M(p): greatest accepted time of each partition that has one (rule 7)
	for _, rec := range recs {
		n.Read++
		if rec.damaged {
			refuse(rec, &n.Malformed, "malformed")
			continue
		}
		if rec.offset < next[rec.partition] {
			n.Redelivered++
			continue
		}
		next[rec.partition] = rec.offset + 1

		if rec.payload == nil {
			refuse(rec, &n.Malformed, "malformed")
			continue
		}
		doc, err := parseJSON([]byte(*rec.payload))
		if err != nil {
			refuse(rec, &n.Malformed, "malformed")
			continue
		}
		key, keyFate := spec.key(rec, doc)
		if keyFate == isBad {
			refuse(rec, &n.BadKey, "bad_key")
			continue
		}
		t, ok := spec.eventTime(rec, doc)
		if !ok {
			refuse(rec, &n.BadTime, "bad_time")
			continue
		}
		m, seen := greatest[rec.partition]
		if seen && t+grace.Milliseconds() < m {
			refuse(rec, &n.Late, "late")
			continue
		}
		if !seen || t > m {
			greatest[rec.partition] = t // null_key and accepted move M, no other does
		}
		if keyFate == isNull {
			n.NullKey++
			continue
		}
		n.Accepted++
		e := &Event{Partition: rec.partition, Offset: rec.offset, Line: rec.line, Time: t, Key: key, Body: spec.body(doc)}
		if e.Stored = e.Body; s.StoreFull {
			e.Stored = doc.compact()
		}
		events = append(events, e)
	}
	return events, refused, n, nil
}

type keyFate int

const (
	isKey keyFate = iota
	isNull
	isBad
)

// key takes the first of the key's paths that exists: a JSON null exists, a null record key does not (rule 4).
func (s side) key(rec record, doc value) (Key, keyFate) {
	for _, p := range s.keys {
		if p == nil {
			if rec.key != nil {
				return Key{Text: *rec.key}, isKey
			}
			continue
		}
		v, ok := doc.at(p)
		if !ok {
			continue
		}
		switch v.kind {
		case '"':
			return Key{Text: v.text}, isKey
		case '0':
			return Key{Number: !s.keyString, Text: v.text}, isKey
		case 'n':
			return Key{}, isNull
		default:
			return Key{}, isBad
		}
	}
	return Key{}, isNull
}

var (
	maxTime     = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()
	integerText = regexp.MustCompile(`^-?[0-9]+$`)
	rfc3339Text = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
)

// eventTime is the event time in whole ms, cut (rule 6); false for a bad time (rule 9).
func (s side) eventTime(rec record, doc value) (int64, bool) {
	if s.time == nil {
		if rec.ts == nil {
			return 0, false
		}
		return *rec.ts, *rec.ts >= 0 && *rec.ts <= maxTime
	}
	v, ok := doc.at(s.time)
	if !ok {
		return 0, false
	}
	if s.unit == "rfc3339" {
		if v.kind != '"' || !rfc3339Text.MatchString(v.text) {
			return 0, false
		}
		t, err := time.Parse(time.RFC3339, v.text)
		return t.UnixMilli(), err == nil && t.Unix() >= 0 && t.UnixMilli() <= maxTime
	}
	if v.kind != '0' || !integerText.MatchString(v.text) {
		return 0, false
	}
	n, ok := new(big.Int).SetString(v.text, 10)
	if !ok || n.Sign() < 0 {
		return 0, false
	}
	perMs := map[string]int64{"ms": 1, "us": 1_000, "ns": 1_000_000, "s": 1}[s.unit]
	n.Quo(n, big.NewInt(perMs))
	if s.unit == "s" {
		n.Mul(n, big.NewInt(1000))
	}
	if n.Cmp(big.NewInt(math.MaxInt64)) > 0 {
		return 0, false
	}
	return n.Int64(), n.Int64() <= maxTime
}

// body is what the output prints for the event: the kept fields as written, absent ones left out; without a list the whole
// value.
func (s side) body(doc value) string {
	if len(s.keep) == 0 {
		return doc.compact()
	}
	var members []string
	for i, p := range s.keep {
		if v, ok := doc.at(p); ok {
			members = append(members, quote(s.names[i])+":"+v.compact())
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
