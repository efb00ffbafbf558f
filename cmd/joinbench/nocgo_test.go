package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"joinbench/results"
)

// TestBuildWithoutRocksDB is B48: version says which RocksDB is linked in; a program that was built without cgo, and so without
// it, says that wherever it matters, and how to build the other.
func TestBuildWithoutRocksDB(t *testing.T) {
	o := joinbench("version")
	o.want(t, 0)
	if !regexp.MustCompile(`(?m)^rocksdb +\d+\.\d+\.\d+ `).MatchString(o.out) {
		t.Errorf("version prints\n%s", o.out)
	}
	if testing.Short() {
		t.Skip("short: nothing is built")
	}
	p := newPlace(t)
	build := exec.Command("go", "build", "-o", p.path("plain"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("CGO_ENABLED=0 go build: %v\n%s", err, out)
	}
	plain := func(args ...string) outcome {
		cmd := exec.Command(p.path("plain"), args...)
		var out, err strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &err
		_ = cmd.Run() // its code is looked at
		return outcome{cmd.ProcessState.ExitCode(), out.String(), err.String()}
	}
	if o := plain("version"); o.code != 0 || !strings.Contains(o.out, " none (built without cgo)\n") {
		t.Errorf("version of a build without cgo: %+v", o)
	}
	if o := plain("doctor", "--dir", p.dir); o.code != 0 || !regexp.MustCompile(`(?m)^bad +rocksdb +none \(built without cgo\)\n +→ .*CGO_ENABLED=1`).MatchString(o.out) {
		t.Errorf("doctor of a build without cgo: %+v", o)
	}
	conf, a := p.write("join.yaml", plainConf), p.write("a", `{"id":"k","t":1}`)
	p.write("small.yaml", smallProfile)
	const message = "built without cgo, so RocksDB is not in it: build it with `make`"
	for _, args := range [][]string{
		{"join", "-c", conf, "--a", a, "--b", a, "--progress", "none"},
		{"join", "-c", conf, "--a", a, "--b", a, "--progress", "none", "--state-dir", p.path("state")},
		{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none"},
	} {
		o := plain(args...)
		o.want(t, results.ExitFailed, message)
		if strings.Count(o.err, "\n") != 1 || o.out != "" {
			t.Errorf("%q prints %q and %q", args, o.out, o.err)
		}
	}
}
