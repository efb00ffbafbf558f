package capture

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"joinbench/projection"
)

// FuzzLine reads any bytes as one line and compares with a reading by encoding/json that shares no code:
// both say damaged, or both find the same record. A record then survives AppendSide and reading again.
func FuzzLine(f *testing.F) {
	for _, name := range []string{"value", "kcat", "rpk"} {
		content, err := os.ReadFile("testdata/" + name + ".ndjson")
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range bytes.Split(content, []byte("\n")) {
			f.Add(line)
		}
	}
	for _, line := range malformed {
		if len(line) < 1000 {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		for _, format := range []Format{Kcat, Rpk} {
			checkLine(t, format, line)
		}
	})
}

func checkLine(t *testing.T, f Format, line []byte) {
	var e envelope
	var rec projection.Record
	arena := e.record(&rec, f, line, false, 3, []byte("before"))
	if string(arena[:6]) != "before" {
		t.Fatalf("the arena was overwritten: %q", arena)
	}
	want, ok := byEncodingJSON(f, line)
	if !ok {
		want = projection.Record{Value: append([]byte{}, line...), Timestamp: -1, Partition: DamagedPartition, Offset: 2, Damaged: true}
	}
	want.Place = 3
	if !sameRecord(rec, want) {
		t.Fatalf("%s of %q:\n%swant\n%s", f, line, dump([]got{{Record: rec}}), dump([]got{{Record: want}}))
	}
	side := AppendSide(nil, "t", &rec, "why")
	if !json.Valid(side) || !utf8.Valid(side) || bytes.IndexByte(side, '\n') != len(side)-1 {
		t.Fatalf("side line %q", side)
	}
	if rec.Damaged {
		return
	}
	var again projection.Record
	e.record(&again, Kcat, side[:len(side)-1], false, 3, nil)
	if !sameRecord(again, rec) {
		t.Fatalf("%q reads again as\n%s", side, dump([]got{{Record: again}}))
	}
}

var integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func byEncodingJSON(f Format, line []byte) (rec projection.Record, ok bool) {
	if !json.Valid(line) || !utf8.Valid(line) || loneSurrogate(string(line)) {
		return rec, false
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if open, _ := dec.Token(); open != json.Delim('{') {
		return rec, false
	}
	first := map[string]string{}
	for dec.More() {
		name, _ := dec.Token()
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return rec, false
		}
		if _, seen := first[name.(string)]; !seen {
			first[name.(string)] = string(raw)
		}
	}
	timeName, valueName := "ts", "payload"
	if f == Rpk {
		timeName, valueName = "timestamp", "value"
	}
	ok = strings.HasPrefix(first["topic"], `"`)
	integer := func(name string, absent int64, bits int) int64 {
		raw, there := first[name]
		if !there {
			return absent
		}
		n, err := strconv.ParseInt(raw, 10, bits)
		ok = ok && err == nil && integerText.MatchString(raw)
		return n
	}
	text := func(name string) (b []byte) {
		switch raw := first[name]; {
		case strings.HasPrefix(raw, `"`):
			var s string
			ok = ok && json.Unmarshal([]byte(raw), &s) == nil
			b = append([]byte{}, s...)
		case raw != "null" && raw != "":
			ok = false
		}
		return b
	}
	rec.Partition = int32(integer("partition", -1, 32))
	rec.Offset = integer("offset", -1, 64)
	rec.Timestamp = integer(timeName, -1, 64)
	rec.Key, rec.Value = text("key"), text(valueName)
	_, hasTime := first[timeName]
	_, hasValue := first[valueName]
	_, hasSize := first["value_size"]
	ok = ok && rec.Partition >= 0 && rec.Offset >= 0
	if f == Kcat {
		return rec, ok && hasValue
	}
	return rec, ok && hasTime && (hasValue || !hasSize)
}

// loneSurrogate looks for half a pair in valid JSON.
func loneSurrogate(s string) bool {
	unit := func(s string) int64 {
		if len(s) < 6 || s[:2] != `\u` {
			return 0
		}
		n, _ := strconv.ParseInt(s[2:6], 16, 32)
		return n
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		switch u := unit(s[i:]); {
		case u >= 0xdc00 && u <= 0xdfff:
			return true
		case u >= 0xd800 && u <= 0xdbff:
			if low := unit(s[i+6:]); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i++
		}
	}
	return false
}
