package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// This file decodes records the slow and obvious way, with encoding/json and time, for the tests to compare with. It
// shares nothing with the decoder but the specs and the reading of paths.

// referenceValid is one whole valid JSON value by encoding/json's word, plus UTF-8, plus no lone surrogates.
func referenceValid(text []byte) bool {
	return json.Valid(text) && utf8.Valid(text) && !loneSurrogate(text)
}

// loneSurrogate looks for one in valid JSON, where every backslash stands in a string.
func loneSurrogate(text []byte) bool {
	high := false // the escape before was the first half of a pair
	for i := 0; i < len(text); {
		var unit uint64
		if text[i] == '\\' && text[i+1] == 'u' {
			unit, _ = strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
		}
		low := unit >= 0xdc00 && unit <= 0xdfff
		if low != high {
			return true
		}
		high = unit >= 0xd800 && unit <= 0xdbff
		switch {
		case text[i] != '\\':
			i++
		case text[i+1] == 'u':
			i += 6
		default:
			i += 2
		}
	}
	return high
}

// lookup finds the raw value at a path in a valid document, the first of duplicates; nil if there is none.
func lookup(raw json.RawMessage, steps []step) json.RawMessage {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(steps) == 0 {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number that no float64 holds (1e999) is valid JSON and may be the value asked for
	open, err := dec.Token()
	if err != nil {
		panic(err)
	}
	want := json.Delim('{')
	if steps[0].index >= 0 {
		want = '['
	}
	if open != want {
		return nil
	}
	for i := 0; dec.More(); i++ {
		found := i == steps[0].index
		if want == '{' {
			name, err := dec.Token()
			if err != nil {
				panic(err)
			}
			found = name == steps[0].name
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			panic(err)
		}
		if found {
			return lookup(value, steps[1:])
		}
	}
	return nil
}

// reference tells the row of a record as rowText does, for strict specs without max_skew.
func reference(side SideSpec, rec Record) string {
	if rec.Damaged || rec.Value == nil || !referenceValid(rec.Value) {
		return "malformed"
	}
	fate, key := referenceKey(side, rec)
	if fate == BadKey {
		return "bad_key"
	}
	at := func(text string) json.RawMessage {
		p, err := ParsePath(text)
		if err != nil {
			panic(err)
		}
		return lookup(rec.Value, p.steps)
	}
	ms, ok := rec.Timestamp, true
	if side.Time != "@timestamp" {
		ms, ok = referenceTime(at(side.Time), side.TimeUnit)
	}
	if !ok || ms < 0 || ms > time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli() {
		return "bad_time"
	}
	var body bytes.Buffer
	if len(side.Keep) == 0 || side.Store == "full" {
		json.Compact(&body, rec.Value)
	} else {
		body.WriteByte('{')
		for _, f := range side.Keep {
			if value := at(f.Path); value != nil {
				if body.Len() > 1 {
					body.WriteByte(',')
				}
				fmt.Fprintf(&body, "%q:", f.Name)
				json.Compact(&body, value)
			}
		}
		body.WriteByte('}')
	}
	if fate == NullKey {
		return fmt.Sprintf("null_key %d %s", ms, body.Bytes())
	}
	return fmt.Sprintf("accepted %d %s %s%s", ms, key, body.Bytes(), referenceWatched(side, at))
}

// referenceWatched is what a row says of the fields that are watched.
func referenceWatched(side SideSpec, at func(path string) json.RawMessage) (text string) {
	var flags int
	for i, test := range []*Test{side.Ends, side.Marks} {
		if test == nil {
			continue
		}
		raw := bytes.TrimSpace(at(test.Path))
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var value any
		if len(raw) > 0 && dec.Decode(&value) == nil {
			switch v := value.(type) {
			case string, json.Number, bool:
				if fmt.Sprint(v) == test.Equals {
					flags |= 1 << i
				}
			}
		}
	}
	if flags != 0 {
		text = fmt.Sprintf(" flags %b", flags)
	}
	if side.Count != "" {
		if n, err := strconv.Atoi(string(bytes.TrimSpace(at(side.Count)))); err == nil && n >= 1 && n <= 999_999 {
			text += fmt.Sprintf(" wants %d", n)
		}
	}
	return text
}

func referenceKey(side SideSpec, rec Record) (Fate, string) {
	for _, text := range side.Key {
		if text == "@key" {
			if rec.Key != nil {
				return Accepted, "s" + string(rec.Key)
			}
			continue
		}
		p, err := ParsePath(text)
		if err != nil {
			panic(err)
		}
		raw := lookup(rec.Value, p.steps)
		if raw == nil {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			panic(err)
		}
		switch v := value.(type) {
		case nil:
			return NullKey, ""
		case string:
			return Accepted, "s" + v
		case json.Number:
			if side.KeyString {
				return Accepted, "s" + v.String()
			}
			return Accepted, "n" + v.String()
		}
		return BadKey, ""
	}
	return NullKey, ""
}

func referenceTime(raw json.RawMessage, unit string) (int64, bool) {
	if unit == "rfc3339" {
		var text string
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
			return 0, false
		}
		t, err := time.Parse(time.RFC3339, text)
		return t.UnixMilli(), err == nil
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	switch {
	case err != nil || n < 0:
		return 0, false
	case unit == "s" && n > 1<<50:
		return 0, false
	case unit == "s":
		return n * 1000, true
	case unit == "us":
		return n / 1000, true
	case unit == "ns":
		return n / 1_000_000, true
	}
	return n, true
}
