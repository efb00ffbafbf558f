package main

import (
	"os"
	"testing"
)

// TestEveryBugCanBePlanted: the list follows the code. Whether the bugs are found is for `make mutants`, which takes a while.
func TestEveryBugCanBePlanted(t *testing.T) {
	if err := os.Chdir("../.."); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range mutants {
		m := &mutants[i]
		if _, err := m.text(); err != nil {
			t.Error(err)
		}
		if names[m.name] || m.old == m.new {
			t.Errorf("%q: twice, or no bug", m.name)
		}
		names[m.name] = true
	}
}
