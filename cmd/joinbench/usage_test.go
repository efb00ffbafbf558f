package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// plainConf joins lines of format value on $.id.
const plainConf = `a: {key: $.id, time: $.t}
b: {key: $.id, time: $.t}
window: {within: 1h}
grace: 0s
state: {sync: none, tasks: 1}
`

// TestFaultsAndTheirCodes: a fault in flags or configuration ends with 2, one in files with 1; the message names what is
// wrong, and nothing is printed or written.
func TestFaultsAndTheirCodes(t *testing.T) {
	p := newPlace(t)
	conf := p.write("join.yaml", plainConf)
	a, b := p.write("a.ndjson", `{"id":"k","t":1}`), p.write("b.ndjson", `{"id":"k","t":1}`)
	files := 0
	bad := func(yaml string) string {
		files++
		return p.write("bad"+strconv.Itoa(files)+".yaml", yaml)
	}
	join := func(args ...string) []string {
		return append([]string{"join", "-c", conf, "--a", a, "--b", b, "--progress", "none"}, args...)
	}
	with := func(yaml string) []string {
		return []string{"join", "-c", bad(yaml), "--a", a, "--b", b, "--progress", "none"}
	}
	for name, c := range map[string]struct {
		code  int
		args  []string
		texts []string
	}{
		"unknown command":         {2, []string{"jion"}, []string{`unknown command "jion"`}},
		"unknown flag":            {2, join("--lat", "x"), []string{"--lat"}},
		"unknown flag of run":     {2, []string{"run", "--fliter", "none"}, []string{"--fliter"}},
		"flag without value":      {2, []string{"join", "-c"}, []string{"-c"}},
		"argument too many":       {2, join("more.ndjson"), []string{`"more.ndjson"`}},
		"no config":               {2, []string{"join", "--a", a, "--b", b}, []string{"-c is missing"}},
		"config is missing":       {2, []string{"join", "-c", p.path("none.yaml"), "--a", a, "--b", b}, []string{"none.yaml", "no such file"}},
		"no --a":                  {2, []string{"join", "-c", conf, "--b", b}, []string{"--a is missing"}},
		"no --b":                  {2, []string{"join", "-c", conf, "--a", a}, []string{"--b is missing"}},
		"unknown key":             {2, with("windw: 10s\n"), []string{":1:", `"windw"`, `did you mean "window"`}},
		"unknown key inside":      {2, with(plainConf + "output: {topc: x}\n"), []string{`topc`, `did you mean "output.topic"`}},
		"window without unit":     {2, with("window: 10\n"), []string{"window", "10"}},
		"grace without unit":      {2, with(strings.Replace(plainConf, "0s", "10", 1)), []string{"grace", "needs a unit"}},
		"one bucket":              {2, with(strings.Replace(plainConf, "{sync", "{buckets: 1, sync", 1)), []string{"state.buckets", "2 to 64"}},
		"65 buckets":              {2, with(strings.Replace(plainConf, "{sync", "{buckets: 65, sync", 1)), []string{"state.buckets", "2 to 64"}},
		"width too small":         {2, with(strings.Replace(plainConf, "{sync", "{width: 1s, sync", 1)), []string{"state.width", "too small"}},
		"key is missing":          {2, with("b: {key: $.id}\nwindow: {within: 1h}\n"), []string{"a.key"}},
		"not YAML":                {2, with("a: [\n"), []string{"bad", ".yaml:1"}},
		"collect":                 {2, with(plainConf + "collect: timeout\n"), []string{"collect: timeout", "set cardinality: one-to-many"}},
		"early":                   {2, with(plainConf + "early: 1s\n"), []string{"early: 1s", "set type: left or outer"}},
		"retract":                 {2, with(plainConf + "retract: true\n"), []string{"retract: true", "set early"}},
		"max_pending":             {2, with(plainConf + "max_pending: -1\n"), []string{"max_pending"}},
		"complete_on, wait":       {2, with(plainConf + "probe: wait\ncomplete_on: {field: $.s, equals: x, emit: pair}\n"), []string{"complete_on", "probe: aligned"}},
		"complete_on, no path":    {2, with(plainConf + "complete_on: {field: $.s..t, equals: x, emit: pair}\n"), []string{"complete_on.field", "$.s..t"}},
		"unmatched topic, left":   {2, with(plainConf + "type: left\nunmatched: topic\n"), []string{"unmatched: topic", "leave the key out"}},
		"table":                   {2, with(strings.Replace(plainConf, "b: {", "b: {kind: table, ", 1)), []string{"b.kind", "not supported"}},
		"offset store":            {2, with(strings.Replace(plainConf, "a: {", "a: {store: offset, ", 1)), []string{"a.store", "serve only", "projection"}},
		"no such filter":          {2, with(strings.Replace(plainConf, "{sync", "{filter: blom, sync", 1)), []string{"state.filter", `did you mean "bloom"`}},
		"delivery":                {2, with(plainConf + "delivery: exactly-one\n"), []string{"delivery", `did you mean "exactly-once"`}},
		"repartition":             {2, with(plainConf + "kafka: {repartition: true}\n"), []string{"kafka.repartition", "not supported"}},
		"sasl without its user":   {2, with(plainConf + "kafka: {sasl: {mechanism: plain, password: p}}\n"), []string{"kafka.sasl.user"}},
		"output key":              {2, with(plainConf + "output: {key: id}\n"), []string{"output.key: id must be"}},
		"path that is none":       {2, with(strings.Replace(plainConf, "$.id", "$.[", 1)), []string{"a", "$.["}},
		"both sides stdin":        {2, []string{"join", "-c", conf, "--a", "-", "--b", "-"}, []string{"standard input"}},
		"format":                  {2, join("--format", "csv"), []string{"--format", `"csv"`, "kcat"}},
		"batch":                   {2, join("--batch", "-1"), []string{"--batch"}},
		"progress":                {2, join("--progress", "loud"), []string{"--progress", "loud"}},
		"out is an input":         {2, join("--out", a), []string{"--out", "is an input"}},
		"late is an input":        {2, join("--late", b), []string{"--late", "is an input"}},
		"dead is an input":        {2, join("--dead", p.dir+"/../"+lastName(p.dir)+"/a.ndjson"), []string{"--dead", "is an input"}},
		"unmatched is an input":   {2, join("--unmatched", a), []string{"--unmatched", "is an input"}},
		"stats is an input":       {2, join("--stats", b), []string{"--stats", "is an input"}},
		"one file for two":        {2, join("--late", p.path("x"), "--dead", p.dir+"/./x"), []string{"--late and --dead"}},
		"out and stats the same":  {2, join("--out", p.path("x"), "--stats", p.path("x")), []string{"--out and --stats"}},
		"a is missing":            {1, []string{"join", "-c", conf, "--a", p.path("none"), "--b", b}, []string{p.path("none"), "does not exist"}},
		"b is a directory":        {1, []string{"join", "-c", conf, "--a", a, "--b", p.dir}, []string{p.dir, "directory"}},
		"b is no gzip":            {1, []string{"join", "-c", conf, "--a", a, "--b", p.write("plain.gz", "{}")}, []string{"plain.gz", "gzip"}},
		"gzip without its suffix": {1, []string{"join", "-c", conf, "--a", a, "--b", p.writeBytes("zipped", gzipped(t, "{}\n"))}, []string{"zipped", ".gz"}},
		"gzip cut off":            {1, []string{"join", "-c", conf, "--a", a, "--b", p.writeBytes("cut.gz", gzipped(t, "{}\n")[:12])}, []string{"cut.gz", "cut off"}},
		"out has no directory":    {1, join("--out", p.path("no/out")), []string{"no/out"}},
		"stats has no directory":  {1, join("--stats", p.path("no/stats")), []string{"no/stats"}},
		"state dir is a file":     {1, join("--state-dir", a), []string{a}},
		"report of nothing":       {2, []string{"report"}, []string{"no record"}},
		"report of no record":     {2, []string{"report", conf}, []string{"join.yaml", "not a"}},
		"report of other JSON":    {2, []string{"report", p.write("other.json", `{"schema":"something.else"}`)}, []string{"other.json"}},
		"report of no file":       {1, []string{"report", p.path("none.json")}, []string{"none.json"}},
		"report format":           {2, []string{"report", "-f", "pdf", conf}, []string{`"pdf"`, "text"}},
		"profile":                 {2, []string{"run", "--profile", "qick"}, []string{`"qick"`, "quick"}},
		"profile file":            {2, []string{"run", "--config", p.path("none.yaml")}, []string{"none.yaml"}},
		"profile with a bad key":  {2, []string{"run", "--config", bad("load: {pendng: 1}\n")}, []string{"pendng", `did you mean "load.pending"`}},
		"profile that cannot be":  {2, []string{"run", "--config", bad("join: {a: {key: $.k}, b: {key: $.k}, window: {after: 1h}}\nload: {match_rate: 1, duplicates: 1, late_share: 0.5}\n")}, []string{"load", "late_share"}},
		"unknown filter":          {2, []string{"run", "--filter", "fuse61"}, []string{"--filter", "fuse61", `did you mean "fuse16"`}},
		"tasks":                   {2, []string{"run", "--tasks", "0"}, []string{"--tasks"}},
		"seed":                    {2, []string{"run", "--seed", "x"}, []string{"--seed"}},
		"summary":                 {2, []string{"run", "--summary", "maybe"}, []string{"--summary", "maybe"}},
		"bare duration":           {2, []string{"run", "--duration", "5"}, []string{"--duration", "unit"}},
		"negative duration":       {2, []string{"run", "--duration", "-5s"}, []string{"--duration"}},
		"threshold":               {2, []string{"run", "--threshold", "join.missing"}, []string{"--threshold", "join.missing", "op one of"}},
		"unknown metric":          {2, []string{"run", "--threshold", "join.fliter.fp_ratio<1"}, []string{"--threshold", `did you mean "join.filter.fp_ratio"?`}},
		"unit of a metric":        {2, []string{"run", "--threshold", "cost.rss_max_bytes<5ms"}, []string{"--threshold", "in bytes"}},
		"threshold of a profile":  {2, []string{"run", "--config", bad("join: {a: {key: $.k}, b: {key: $.k}, window: {after: 1h}}\nload: {thresholds: [join.misssing==0]}\n")}, []string{"load.thresholds", `"join.missing"`}},
		"threshold of report":     {2, []string{"report", "--threshold", "x<1", conf}, []string{"--threshold", `"x"`}},
		"resume without dir":      {2, []string{"run", "--resume"}, []string{"--resume needs --dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := joinbench(c.args...)
			o.want(t, c.code, append(c.texts, "joinbench: ")...)
			if o.out != "" {
				t.Errorf("standard output: %s", o.out)
			}
		})
	}
	if p.read("a.ndjson") != `{"id":"k","t":1}`+"\n" || p.read("b.ndjson") != p.read("a.ndjson") {
		t.Error("an input was changed")
	}
	for _, name := range []string{"x", "results"} {
		if _, err := os.Stat(p.path(name)); err == nil {
			t.Errorf("a call that was refused made %s", name)
		}
	}
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// TestErrorStandsAlone: a run that never began shows no progress before its error, in the way of the default too.
func TestErrorStandsAlone(t *testing.T) {
	p := newPlace(t)
	conf := p.write("join.yaml", plainConf)
	for _, args := range [][]string{{"join", "-c", conf, "--a", p.path("none"), "--b", conf}, {"run", "--dir", p.path("none"), "--resume"}} {
		o := joinbench(args...)
		o.want(t, 1)
		if !strings.HasPrefix(o.err, "joinbench: ") || strings.Count(o.err, "\n") != 1 {
			t.Errorf("%v: standard error is not one line: %q", args, o.err)
		}
	}
}

// TestEnvironment: a variable stands between file and flag, and one that names nothing is refused.
func TestEnvironment(t *testing.T) {
	p := newPlace(t)
	conf := p.write("join.yaml", plainConf)
	t.Setenv("JOINBENCH_STATE_FILTER", "fuse8")
	o := joinbench("join", "-c", conf, "--print-config")
	o.want(t, 0)
	if !strings.Contains(o.out, "filter: fuse8") || !strings.Contains(o.out, "env JOINBENCH_STATE_FILTER") {
		t.Errorf("printed configuration: %s", o.out)
	}
	again := p.write("printed.yaml", o.out)
	if o := joinbench("join", "-c", again, "--print-config"); o.code != 0 || !strings.Contains(o.out, "after: 1h") {
		t.Errorf("what --print-config prints cannot be read: %+v", o)
	}
	t.Setenv("JOINBENCH_STATE_FILTR", "fuse8")
	joinbench("join", "-c", conf, "--print-config").want(t, 2, "JOINBENCH_STATE_FILTR", "did you mean JOINBENCH_STATE_FILTER")
}

// TestHelpAndVersion: help is for standard output and succeeds; version --json has the fields that scripts read.
func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{}, {"-h"}, {"join", "-h"}, {"run", "--help"}, {"help", "report"}} {
		o := joinbench(args...)
		o.want(t, 0)
		if !strings.Contains(o.out, "Usage:") || o.err != "" {
			t.Errorf("%v: stdout %q, stderr %q", args, o.out, o.err)
		}
	}
	o := joinbench("version", "--json")
	o.want(t, 0)
	var v map[string]any
	if err := json.Unmarshal([]byte(o.out), &v); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"version", "go", "rocksdb", "json_engine"} {
		if s, _ := v[field].(string); s == "" {
			t.Errorf("version --json: %s is %v", field, v[field])
		}
	}
	for field, want := range map[string]any{"rocksdb_assertions": false, "dirty": false} {
		if _, ok := v[field].(bool); !ok {
			t.Errorf("version --json: %s is %v, want something like %v", field, v[field], want)
		}
	}
	if _, ok := v["commit"]; !ok {
		t.Error("version --json lacks commit")
	}
	o = joinbench("version")
	o.want(t, 0)
	for _, word := range []string{"joinbench", "rocksdb", "json", "commit"} {
		if !strings.Contains(o.out, word) {
			t.Errorf("version lacks %s: %s", word, o.out)
		}
	}
	o = joinbench("doctor")
	o.want(t, 0)
	if !strings.Contains(o.out, "rocksdb") {
		t.Errorf("doctor: %s", o.out)
	}
}

// TestDirectoryInUse: a second process ends at once, says who holds the directory, and leaves the first alone (B37).
func TestDirectoryInUse(t *testing.T) {
	p := newPlace(t)
	conf, a := p.write("join.yaml", plainConf), p.write("a.ndjson", `{"id":"k","t":1}`)
	state := p.path("state")
	in, feed := io.Pipe()
	first := startProgram(t, in, "join", "-c", conf, "--a", a, "--b", "-", "--state-dir", state, "--progress", "none")
	waitFor(t, "the lock", func() bool { return size(state+"/LOCK") > 0 })
	holder := "process " + strconv.Itoa(first.Process.Pid)
	for _, args := range [][]string{
		{"join", "-c", conf, "--a", a, "--b", a, "--state-dir", state},
		{"run", "--dir", state},
		{"run", "--dir", state, "--resume"},
	} {
		start := time.Now()
		joinbench(args...).want(t, 1, holder, "joinbench join", state)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%v took %v", args, took)
		}
	}
	if _, err := io.WriteString(feed, `{"id":"k","t":2}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	o := first.end()
	o.want(t, 0)
	if len(o.lines(t)) != 1 {
		t.Errorf("the first process printed %q", o.out)
	}
	joinbench("join", "-c", conf, "--a", a, "--b", a, "--state-dir", state).want(t, 0)
}
