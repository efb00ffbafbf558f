package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryRuleHasATest: each rule of the join that this build has is the number of a test, and each case of others that
// is about the join or its time is named by one. What a test is worth its own package says.
func TestEveryRuleHasATest(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") && filepath.Base(path) != "rules_test.go" {
			var text []byte
			text, err = os.ReadFile(path)
			tests.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rule := 1; rule <= 23; rule++ {
		if rule == 21 || rule == 22 { // tables, and more than two topics: not in this build
			continue
		}
		if name := fmt.Sprintf("func TestRule%02d", rule); !strings.Contains(tests.String(), name) {
			t.Errorf("no test is named after rule %d", rule)
		}
	}
	for _, n := range []int{1, 2, 4, 5, 6, 7, 11, 13, 16, 19, 21} {
		if name := fmt.Sprintf(`\bB%02d\b`, n); !regexp.MustCompile(name).MatchString(tests.String()) {
			t.Errorf("no test names case B%02d", n)
		}
	}
}
