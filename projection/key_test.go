package projection

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestAppendKey(t *testing.T) {
	for typed, want := range map[string]string{
		"":                           `null`,
		"s":                          `""`,
		"sk1":                        `"k1"`,
		"n9007199254740993":          `9007199254740993`,
		"n-1.50E+03":                 `-1.50E+03`,
		"s5":                         `"5"`,
		"sa\"b\\c/d":                 `"a\"b\\c/d"`,
		"s\n\r\t\x00\x1f\x7f":        `"\n\r\t\u0000\u001f` + "\x7f" + `"`,
		"s<é日😀>":                     `"<é日😀>"`,
		"sa\xffb\xc3":                "\"a\uFFFDb\uFFFD\"",
		"s0123456789abcdef\xed\xa0x": "\"0123456789abcdef\uFFFD\uFFFDx\"",
	} {
		if got := string(AppendKey([]byte("-"), []byte(typed))); got != "-"+want {
			t.Errorf("%q: got %s, want -%s", typed, got, want)
		}
	}
}

// TestStringsRoundTrip: any bytes come back from their own JSON, as encoding/json reads and writes it too.
func TestStringsRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 5000 {
		raw := make([]byte, rng.IntN(40))
		for i := range raw {
			raw[i] = byte(rng.IntN(256))
			if rng.IntN(3) > 0 {
				raw[i] = byte(rng.IntN(128))
			}
		}
		ours := appendQuoted(nil, raw)
		var theirs, want string
		if err := json.Unmarshal(ours, &theirs); err != nil {
			t.Fatalf("%q: %s: %v", raw, ours, err)
		}
		quoted, _ := json.Marshal(string(raw))
		if err := json.Unmarshal(quoted, &want); err != nil || theirs != want {
			t.Fatalf("%q: ours reads as %q, encoding/json's as %q", raw, theirs, want)
		}
		for _, text := range [][]byte{ours, quoted} {
			if end, _ := skipString(text, 1); end != len(text) {
				t.Fatalf("%s ends at %d", text, end)
			}
			if got := string(appendUnquoted(nil, text[1:len(text)-1])); got != want {
				t.Fatalf("%s: decoded %q, want %q", text, got, want)
			}
		}
	}
}

// TestSkipStringEverywhere places every byte at every distance from the quote, over and across the eight-byte
// steps.
func TestSkipStringEverywhere(t *testing.T) {
	for length := range 40 {
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("x", length) + `"` + strings.Repeat("y", at%11))
				text[at] = byte(c)
				want := length + 1
				switch {
				case c == '"':
					want = at + 1
				case c < 0x20, c >= 0x80:
					want = broken
				case c == '\\':
					want = broken // \x is no escape, and after \" the string has no end
				}
				if got, escaped := skipString(text, 0); got != want || escaped {
					t.Fatalf("length %d, %#x at %d: end %d %v, want %d", length, c, at, got, escaped, want)
				}
			}
		}
	}
}
