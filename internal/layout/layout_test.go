// Package layout keeps the imports of this module pointing one way.
package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "joinbench"

// allowed says which packages of ours each package may import (DESIGN.md, the packages). A new package gets a line here,
// with as few as can be.
var allowed = map[string][]string{
	"buckets":    {"internal/failpoint"},
	"fusefilter": {},
	"projection": {},
	"loadgen":    {},
	"results":    {"internal/near"},
	"config":     {"internal/near"},
	"compare":    {"internal/procgroup", "results"},
	"core":       {"buckets", "fusefilter", "internal/failpoint"},
	"baseline":   {"buckets", "core"},
	"kafka":      {"projection"},
	"capture":    {"projection"},
	"broker":     {},
	"ops":        {"config", "kafka", "projection", "results"},
	"pipeline": {"buckets", "capture", "config", "core", "fusefilter", "internal/failpoint", "internal/near", "internal/procgroup",
		"kafka", "loadgen", "projection", "results"},
	"cmd/joinbench": {"baseline", "broker", "buckets", "capture", "compare", "config", "core", "fusefilter", "internal/failpoint", "kafka", "loadgen",
		"ops", "pipeline", "projection", "results"},
	"internal/procgroup": {},
	"internal/failpoint": {},
	"internal/leak":      {}, // for tests alone
	"internal/oracle":    {}, // for tests alone
	"internal/layout":    {},
	"internal/kafkatest": {"broker"}, // for tests alone
	"internal/near":      {},
	"internal/schemagen": {}, // for tests alone
	"deploy":             {}, // a test alone
	"internal/overlay":   {},
	"internal/mutants":   {"internal/overlay"},            // a program: it plants bugs in the others
	"internal/gateproof": {"compare", "internal/overlay"}, // a program: it makes builds that are worse, and has them compared
}

// inTests is what the tests of a package may import besides.
var inTests = map[string][]string{
	"ops":           {"internal/kafkatest"},
	"baseline":      {"internal/leak"},
	"compare":       {"internal/schemagen"},
	"results":       {"internal/schemagen"},
	"buckets":       {"internal/leak"},
	"core":          {"internal/leak"},
	"kafka":         {"internal/leak"},
	"pipeline":      {"baseline", "internal/leak", "internal/oracle"},
	"broker":        {"internal/kafkatest", "internal/leak"},
	"cmd/joinbench": {"internal/kafkatest", "internal/oracle"},
	"deploy":        {"config"},
}

// playsKafka may import the client of Kafka besides, as all tests may: what stands on the other side of the wire.
const playsKafka = "internal/kafkatest"

// onlyFor names packages of others that one package of ours alone may import.
var onlyFor = map[string]string{
	"github.com/linxGnu/grocksdb":       "buckets", // so that all else builds and is tested without C
	"github.com/twmb/franz-go/pkg/kgo":  "kafka",   // so that all that is said of Kafka is said in one place
	"github.com/twmb/franz-go/pkg/kadm": "kafka",
}

// maxChain is how many packages of ours may stand in a row of imports.
const maxChain = 5

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
	DepsErrors                         []struct{ Err string }
}

// list asks go list about packages and everything they depend on, with and without C, and puts both answers together.
func list(t *testing.T) map[string]*pkg {
	t.Helper()
	all := map[string]*pkg{}
	for _, cgo := range []string{"0", "1"} {
		cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Imports,TestImports,XTestImports,DepsErrors", module+"/...")
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, stderr.String())
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		for {
			var p pkg
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if len(p.DepsErrors) > 0 && ours(p.ImportPath) {
				t.Fatalf("%s: %s", p.ImportPath, p.DepsErrors[0].Err)
			}
			if have := all[p.ImportPath]; have != nil {
				p.Imports = append(p.Imports, have.Imports...)
				p.TestImports = append(p.TestImports, have.TestImports...)
				p.XTestImports = append(p.XTestImports, have.XTestImports...)
			}
			all[p.ImportPath] = &p
		}
	}
	return all
}

func ours(path string) bool { return strings.HasPrefix(path, module+"/") }

// repository is where a package of others lies: its own packages may import each other.
func repository(path string) string {
	return strings.Join(strings.SplitN(path, "/", 4)[:min(3, strings.Count(path, "/")+1)], "/")
}

func short(path string) string { return strings.TrimPrefix(path, module+"/") }

// TestImportsPointOneWay holds every package against the table.
func TestImportsPointOneWay(t *testing.T) {
	all := list(t)
	seen := map[string]bool{}
	for path, p := range all {
		name := short(path)
		if !ours(path) {
			for other, one := range onlyFor {
				if slices.Contains(p.Imports, other) && repository(path) != repository(other) {
					t.Errorf("%s imports %s, which is for %s alone", path, other, one)
				}
			}
			continue
		}
		seen[name] = true
		may, ok := allowed[name]
		if !ok {
			t.Errorf("%s is not in the table of packages: say what it may import", name)
		}
		check(t, name, "imports", p.Imports, may)
		tests := slices.Concat(may, inTests[name], []string{name})
		check(t, name, "has tests that import", slices.Concat(p.TestImports, p.XTestImports), tests)
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s is in the table and not in the module", name)
		}
	}
	for other, one := range onlyFor {
		if p := all[module+"/"+one]; p == nil || !slices.Contains(p.Imports, other) {
			t.Errorf("%s does not import %s: this test would not see who does", one, other)
		}
	}
}

func check(t *testing.T, name, verb string, imports, may []string) {
	t.Helper()
	for _, i := range slices.Compact(slices.Sorted(slices.Values(imports))) {
		switch one, only := onlyFor[i]; {
		case only && one == "kafka" && (name == playsKafka || verb != "imports"):
		case only && one != name:
			t.Errorf("%s %s %s, which is for %s alone", name, verb, i, one)
		case ours(i) && strings.HasPrefix(short(i), "cmd/"):
			t.Errorf("%s %s %s: nothing imports a command", name, verb, i)
		case ours(i) && !slices.Contains(may, short(i)):
			t.Errorf("%s %s %s, which the table does not allow", name, verb, short(i))
		}
	}
}

// TestChainIsShort measures the longest row of our packages in which each imports the next, as it is and as the table
// would allow.
func TestChainIsShort(t *testing.T) {
	real := map[string][]string{}
	for path, p := range list(t) {
		if ours(path) {
			for _, i := range p.Imports {
				if ours(i) {
					real[short(path)] = append(real[short(path)], short(i))
				}
			}
		}
	}
	for what, graph := range map[string]map[string][]string{"imports": real, "table": allowed} {
		longest := []string{}
		for _, name := range slices.Sorted(maps.Keys(graph)) {
			if c := chain(t, graph, name, nil); len(c) > len(longest) {
				longest = c
			}
		}
		t.Logf("%s: %s", what, strings.Join(longest, " → "))
		if len(longest) > maxChain {
			t.Errorf("%s: a chain of %d packages, at most %d: %s", what, len(longest), maxChain, strings.Join(longest, " → "))
		}
		if len(longest) < 3 {
			t.Errorf("%s: the longest chain is %v: this test does not see the imports", what, longest)
		}
	}
}

// chain is the longest one that starts with a package.
func chain(t *testing.T, graph map[string][]string, name string, above []string) []string {
	if slices.Contains(above, name) {
		t.Fatalf("the table has a circle: %v %s", above, name)
	}
	above = append(slices.Clone(above), name)
	longest := []string{}
	for _, next := range graph[name] {
		if c := chain(t, graph, next, above); len(c) > len(longest) {
			longest = c
		}
	}
	return append([]string{name}, longest...)
}
