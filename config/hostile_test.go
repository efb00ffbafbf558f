package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are texts of about n bytes at which a YAML parser may take very long: what it has to look at again grows with
// what it has seen.
func hostile(n int) map[string]string {
	texts := map[string]string{}
	for _, unit := range []string{"\n", "\r", "\r\n", "\n\n ", "\n  x", "a,", ",a", "{},", "x: {y: z}\n", "- b\n", "a: |\n", "a: &a ", "*a ", "!!str ",
		"[", "{", "[{", "- ", "? ", "a: ", "-\n", "'", "\"", "#", ": ", "%", "`", "\t", "<<: *a\n", "---\n"} {
		for _, start := range []string{"", "a: |\n  ", "a: >\n", "a: [", "a: {", "a: \"", "a: '", "a: x"} {
			texts[fmt.Sprintf("%q and many %q", start, unit)] = start + strings.Repeat(unit, max(1, (n-len(start))/len(unit)))
		}
	}
	var stairs, bomb strings.Builder
	for i := 0; stairs.Len() < n-i-3; i++ {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ { // each alias nine times the one before
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	texts["stairs"], texts["aliases of aliases"] = stairs.String(), bomb.String()
	return texts
}

// TestHostileTextEnds: no text of the length that is allowed keeps the reader busy. Before its parts were counted, 64 KiB
// of empty lines in a block scalar did so for minutes. The limit is for a hang only: the slowest takes about a second.
func TestHostileTextEnds(t *testing.T) {
	for _, size := range []int{maxParts, maxText} {
		for what, text := range hostile(size) {
			done := make(chan error, 1)
			go func() {
				_, err := Parse([]byte(text), "f.yaml")
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					wantFaults(t, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%d bytes of %s: not read within a minute", size, what)
			}
		}
	}
}

// TestTooManyParts: the line at which it was too much is named; as many as are allowed are read.
func TestTooManyParts(t *testing.T) {
	_, err := Parse([]byte(small+strings.Repeat("\n", maxParts)), "f.yaml")
	if err == nil || !strings.Contains(err.Error(), "f.yaml:4001") || !strings.Contains(err.Error(), "too many") {
		t.Errorf("error %v, want one about line 4001", err)
	}
	fits := small + strings.Repeat("#\n", maxParts-strings.Count(small, "\n")-strings.Count(small, ","))
	if _, err := Parse([]byte(fits), "f.yaml"); err != nil {
		t.Errorf("%d lines and commas: %v", maxParts, err)
	}
}
