package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testFunc is a test function and what its comment says.
type testFunc struct{ name, doc string }

// testFuncs lists all test functions of the module.
func testFuncs(t *testing.T) (all []testFunc) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				all = append(all, testFunc{f.Name.Name, f.Doc.Text()})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryRuleHasATest: each rule of the join that this build has is what a test is named after, and each case from the field
// about joins, time and Kafka stands in the name or the comment of one.
func TestEveryRuleHasATest(t *testing.T) {
	rules, cases := map[string]bool{}, map[string]bool{}
	ruleName, caseName := regexp.MustCompile(`^TestRule(\d\d)[A-Z]`), regexp.MustCompile(`\bB\d\d\b`)
	for _, f := range testFuncs(t) {
		if m := ruleName.FindStringSubmatch(f.name); m != nil {
			rules[m[1]] = true
		}
		for _, c := range caseName.FindAllString(f.doc+" "+strings.TrimPrefix(f.name, "Test"), -1) {
			cases[c] = true
		}
	}
	for n := 1; n <= 23; n++ {
		if rule := fmt.Sprintf("%02d", n); !rules[rule] && (n <= 20 || n == 23) {
			t.Errorf("no test is named TestRule%s…", rule)
		}
	}
	// Of Kafka, those that one member meets.
	kafka := []string{"B22", "B26", "B30", "B32", "B33", "B36", "B37"}
	for _, c := range append(kafka, "B01", "B02", "B04", "B05", "B06", "B07", "B11", "B13", "B16", "B19", "B21") {
		if !cases[c] {
			t.Errorf("no test names case %s", c)
		}
	}
}
