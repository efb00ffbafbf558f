package config

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"
)

// Whatever the text is: no panic, each error an *Error with a message, and what is accepted is printed in a form
// that means the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{sample, small, profileText, "", "a", "a: [", "---\n", "? a", "a: {key: @key}", "a: &x {key: *x}",
		"kafka: {brokers: [a:b, \"[::1]:1\"]}", "collect: {marker: {field: $.t, equals: [}}", "a:\n  - - - b", "\ufeffgrace: 1s",
		"state: {dir: \"\\x00\\u2028\"}", "a: |\n  $.x\n", "window: {within: 1h}\nkafka: {sasl: {a: {b: c}}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := Parse(data, "f.yaml"); err != nil {
			wantFaults(t, err)
		} else {
			checkReadsBack(t, j)
		}
		if p, err := ParseProfile(data, "f.yaml"); err != nil {
			wantFaults(t, err)
		} else {
			if err := p.Validate(); err != nil {
				wantFaults(t, err)
			}
			var out bytes.Buffer
			if err := p.Print(&out); err != nil {
				t.Fatal(err)
			}
			back, err := ParseProfile(out.Bytes(), "printed")
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if len(back.Load.Ages) == 0 && len(p.Load.Ages) == 0 {
				back.Load.Ages, p.Load.Ages = nil, nil
			}
			if !reflect.DeepEqual(back.Load, p.Load) || !sameJoin(bare(back.Join), bare(p.Join)) {
				t.Fatalf("got  %+v %+v\nwant %+v %+v", back.Join, back.Load, p.Join, p.Load)
			}
		}
		for _, key := range []string{"a.key", "b.keep", "collect", "kafka.brokers", "window", "grace", string(data)} {
			if err := Default().Set(key, string(data), "flag"); err != nil {
				wantFaults(t, err)
			}
		}
	})
}

func checkReadsBack(t *testing.T, j *Join) {
	t.Helper()
	if err := j.Validate(); err != nil {
		wantFaults(t, err)
	} else if j.Width() <= 0 || j.Spread() <= j.Window.Before+j.Grace {
		t.Fatalf("valid, but width %v, spread %v", j.Width(), j.Spread())
	}
	var out bytes.Buffer
	if err := j.Print(&out); err != nil {
		t.Fatal(err)
	}
	back, err := Parse(out.Bytes(), "printed")
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !sameJoin(bare(back), bare(j)) {
		t.Fatalf("got  %+v\nwant %+v\n%s", bare(back), bare(j), &out)
	}
}

func wantFaults(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		t.Fatalf("%T is no *Error with faults: %v", err, err)
	}
	for _, f := range e.Faults {
		if f.Message == "" || !utf8.ValidString(f.Excerpt) {
			t.Fatalf("%+v", f)
		}
	}
}
