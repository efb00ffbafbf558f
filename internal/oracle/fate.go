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

// fated is a record and what became of it (rule 9): the name of its counter. event is set for those that have a time,
// accepted and null_key.
type fated struct {
	record
	fate  string
	event *Event
}

// fates reads a file and decides the one fate of each record, in the order of rule 9; they come in file order. extras adds
// to an accepted event what a join wants to know of its record beside key, time and body.
func fates(s Side, grace time.Duration, file []byte, format string, extras func(*Event, value)) ([]fated, error) {
	spec, err := compile(s)
	if err != nil {
		return nil, err
	}
	recs, err := records(file, format)
	if err != nil {
		return nil, err
	}
	all := make([]fated, len(recs))
	parts := map[int32]*history{}
	for i, rec := range recs {
		f := &all[i]
		f.record = rec
		if rec.damaged {
			f.fate = "malformed" // and of no partition
			continue
		}
		if parts[rec.partition] == nil {
			parts[rec.partition] = &history{}
		}
		var doc value
		f.fate, f.event, doc = spec.fate(rec, parts[rec.partition], grace.Milliseconds())
		if f.event == nil {
			continue
		}
		f.event.Body = spec.body(doc)
		if f.event.Stored = f.event.Body; s.StoreFull {
			f.event.Stored = doc.compact()
		}
		if f.fate == "accepted" {
			extras(f.event, doc)
		}
	}
	return all, nil
}

// history is what earlier records of a partition decide about later ones.
type history struct {
	next int64 // records below this offset were read before (rule 3)
	m    int64 // M(p): the greatest accepted time (rule 7), if there is one
	seen bool
}

// fate asks in the order of rule 9. The event is that of a record with a time, with its place, time and key.
func (s side) fate(rec record, h *history, grace int64) (string, *Event, value) {
	if rec.offset < h.next {
		return "redelivered", nil, value{}
	}
	h.next = rec.offset + 1
	if rec.payload == nil {
		return "malformed", nil, value{}
	}
	doc, err := parseJSON([]byte(*rec.payload))
	if err != nil {
		return "malformed", nil, value{}
	}
	key, keyFate := s.key(rec, doc)
	if keyFate == isBad {
		return "bad_key", nil, value{}
	}
	t, ok := s.eventTime(rec, doc)
	if !ok {
		return "bad_time", nil, value{}
	}
	if h.seen && t+grace < h.m {
		return "late", nil, value{}
	}
	if !h.seen || t > h.m {
		h.m, h.seen = t, true // null_key and accepted move M, no other does
	}
	e := &Event{Partition: rec.partition, Offset: rec.offset, Line: rec.line, Time: t, Key: key}
	if keyFate == isNull {
		e.NullKey = true
		return "null_key", e, doc
	}
	return "accepted", e, doc
}

// count adds up the fates.
func count(all []fated) (n Counters) {
	of := map[string]*int64{"accepted": &n.Accepted, "null_key": &n.NullKey, "bad_key": &n.BadKey, "malformed": &n.Malformed,
		"bad_time": &n.BadTime, "late": &n.Late, "redelivered": &n.Redelivered}
	for _, f := range all {
		n.Read++
		*of[f.fate]++
	}
	return n
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
