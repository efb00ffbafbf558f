package results

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
)

// Every number of the CSV is the record's, and every number of the record is in the CSV.
func TestCSVReadsBack(t *testing.T) {
	rec, other := exampleRecord(), brokenRecord()
	other.Run.ID, other.Run.Label = "other", "a \"quoted\", label\nof two lines"
	var b bytes.Buffer
	if err := WriteCSV(&b, rec, other); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\r\n") {
		t.Error("lines do not end as RFC 4180 says")
	}
	rows := must(csv.NewReader(&b).ReadAll())
	if strings.Join(rows[0], ",") != strings.Join(csvHead, ",") {
		t.Fatalf("head %q", rows[0])
	}
	values := map[string]float64{}
	for _, row := range rows[1:] {
		key := row[0] + " " + row[4] + " " + row[5]
		if _, twice := values[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		values[key] = must(strconv.ParseFloat(row[6], 64))
		if row[0] == "other" && row[1] != other.Run.Label {
			t.Errorf("label %q", row[1])
		}
	}
	if got, want := values["other none ns_per_b_ratio"], *rec.Arms[1].NsPerB / *rec.Arms[0].NsPerB; got != want {
		t.Errorf("ratio of an arm %v, want %v", got, want)
	}
	found := 0
	for _, r := range []*Record{rec, other} {
		for _, path := range Metrics() {
			for _, path := range namedPaths(r, path) {
				m := must(ParseMetric(path))
				want, _ := m.Value(r)
				key := r.Run.ID + "  " + path
				if arm, ok := strings.CutPrefix(path, "arms."); ok {
					name, field, _ := strings.Cut(arm, ".")
					key = r.Run.ID + " " + name + " " + field
				}
				got, ok := values[key]
				if want == nil && strings.HasSuffix(key, "_ratio") {
					continue // of an arm that has none of its own
				}
				if ok != (want != nil) || ok && got != *want {
					t.Errorf("%s is %v in the CSV, %v in the record", key, got, orDash(want, plain))
				}
				if ok {
					found++
					delete(values, key)
				}
			}
		}
	}
	if found < 250 {
		t.Errorf("only %d numbers", found)
	}
	for key, v := range values { // what is left are ratios of arms
		if !strings.HasSuffix(key, "_ratio") {
			t.Errorf("%s = %v is not the record's", key, v)
		}
	}
}

// What benchstat's own parser reads are the record's numbers.
func TestBenchReadsBack(t *testing.T) {
	rec, again := exampleRecord(), exampleRecord()
	again.Tool.Commit = "4567def"
	again.Arms = nil
	again.Cost.NsPerB = Known(82.5)
	again.Run.Label = "a/b =c"
	var b bytes.Buffer
	if err := WriteBench(&b, rec, again); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "test")
	var names []string
	var results []*benchfmt.Result
	units := map[string]string{}
	for r.Scan() {
		switch one := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatalf("not understood: %v", one)
		case *benchfmt.UnitMetadata:
			units[one.OrigUnit+" "+one.Key] = one.Value
		case *benchfmt.Result:
			names = append(names, one.Name.String())
			results = append(results, one.Clone())
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	const base = "Join/profile=quick/filter=fuse16/summary=on/tasks=1"
	want := []string{base, base + "/arm=fuse16", base + "/arm=none", "Join/profile=quick/label=a_b__c/filter=fuse16/summary=on/tasks=1"}
	if strings.Join(names, "\n") != strings.Join(want, "\n") {
		t.Fatalf("names %q", names)
	}
	if units["ns/B better"] != "lower" || units["B/s better"] != "higher" || units["missing assume"] != "exact" || units["ns/B assume"] != "" {
		t.Errorf("units %v", units)
	}
	check := func(r *benchfmt.Result, unit string, want float64) {
		t.Helper()
		for _, v := range r.Values {
			if v.OrigUnit == unit || v.OrigUnit == "" && v.Unit == unit {
				got := v.Value
				if v.OrigUnit != "" {
					got = v.OrigValue
				}
				if math.Abs(got-want) > 1e-12*math.Abs(want) {
					t.Errorf("%s of %s is %v, want %v", unit, r.Name, got, want)
				}
				return
			}
		}
		t.Errorf("%s of %s is missing", unit, r.Name)
	}
	for i, one := range []*Record{rec, nil, nil, again} {
		if one == nil {
			continue
		}
		for _, u := range benchUnits() {
			if v := u.value(one); v != nil {
				check(results[i], u.unit, *v)
			}
		}
		if results[i].Iters != int(one.Join.Probes) || results[i].GetConfig("commit") != one.Tool.Commit ||
			results[i].GetConfig("fingerprint") != one.Run.WorkloadFingerprint || results[i].GetConfig("cpu") != "AMD EPYC 9005" {
			t.Errorf("%s: %d iterations, commit %q", results[i].Name, results[i].Iters, results[i].GetConfig("commit"))
		}
	}
	for unit, want := range map[string]float64{"ns/B": 81.04, "ns/A": 312.6, "background-ns/A": 244.1, "record-ns/B": 812.4, "unit-ns": 28.02,
		"B/s": 182_481.7, "rss-bytes": 412<<20 + 345_678, "disk-bytes": 367_001_600, "allocs/B": 0.0000312, "cpu-s/M": 0.9312,
		"lookups/B": 51_211.0 / 4_999_990, "fp-ppm": 1_208.0 / 4_949_987 * 1e6, "pairs": 50_003, "missing": 0, "spurious": 0, "duplicated": 0, "restart-ns": 640_000_000} {
		check(results[0], unit, want)
	}
	check(results[2], "ns/B", 31_204)
	check(results[2], "lookups/B", 16.0002)
	check(results[1], "fp-ppm", 244)
}

// The Markdown table has a column for each record, and the texts of its cells are those of the figures.
func TestMarkdownSideBySide(t *testing.T) {
	a, b := exampleRecord(), brokenRecord()
	b.Run.ID = "other"
	var out bytes.Buffer
	if err := WriteMarkdown(&out, a, b); err != nil {
		t.Fatal(err)
	}
	golden(t, "two.md", out.Bytes())
	cells := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if parts := strings.Split(strings.Trim(line, "|\n "), " | "); len(parts) == 3 {
			cells[parts[0]] = parts[1:]
		}
	}
	for _, f := range figures([]*Record{a, b}) {
		if got := cells[f.name]; len(got) != 2 || got[0] != f.text(a) || got[1] != f.text(b) {
			t.Errorf("%s: %q", f.name, got)
		}
	}
}

// The picture is well-formed, needs nothing from elsewhere, and shows what the record has.
func TestSVG(t *testing.T) {
	rec := exampleRecord()
	rec.Run.Label = `<script>&"` + "\x01"
	for i := range rec.Intervals {
		rec.Intervals[i].BatchP99Ns, rec.Intervals[i].Seals = new(int64(i+1)*1_000_000), int64(i%10/9)
	}
	svg := string(render(t, rec, "svg", TextOptions{}))
	texts := wellFormed(t, svg)
	for _, want := range []string{"B per second", "batch, p99", "bucket dropped", "bucket sealed", "measure", "thousand B per second", "milliseconds"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q among %q", want, texts)
		}
	}
	for _, bad := range []string{"<script", "href", "url(", "@import", "NaN"} {
		if strings.Contains(svg, bad) {
			t.Errorf("the picture has %q", bad)
		}
	}
	for _, i := range []ink{inkPaper, inkText, inkGrid, inkPhase, inkDrop, inkSeal, inkRate, inkBatch} {
		if strings.Count(svg, ":"+i.light) < 3 || !strings.Contains(svg, i.dark) { // twice in the style sheet
			t.Errorf("colour %s is not drawn, or has no dark one", i.light)
		}
	}
	if n := strings.Count(svg, "stroke:"+inkDrop.light); n != 1+2*3+1 { // style sheet, three drops in two panels, key
		t.Errorf("drops drawn: %d", n)
	}
	rec.Intervals = rec.Intervals[:1]
	if err := WriteSVG(io.Discard, rec); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("a picture of one interval: %v", err)
	}
	if err := RenderAll(io.Discard, []*Record{rec, rec}, "svg", TextOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a picture of two records: %v", err)
	}
}

// wellFormed reads XML to its end and gives its texts.
func wellFormed(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if chars, ok := token.(xml.CharData); ok {
			b.Write(chars)
		}
	}
}

// The points of the picture are the record's, in the order of time.
func TestChartPoints(t *testing.T) {
	rec := exampleRecord()
	rec.Intervals[20].ProbesPerS = nil
	p := ratePanel(rec)
	if n := len(p.series[0].points); n != len(rec.Intervals)-1 {
		t.Fatalf("%d points", n)
	}
	for i, xy := range p.series[0].points {
		k := i
		if i >= 20 {
			k++
		}
		if one := rec.Intervals[k]; xy.X != float64(one.TNs)/1e9 || math.Abs(xy.Y-*one.ProbesPerS/1e3) > 1e-9 {
			t.Errorf("point %d is %v", i, xy)
		}
	}
	if from, to := timeSpan(rec); from != 12.17-27.4/12 || to < 39.57 {
		t.Errorf("drawn from %v to %v", from, to)
	}
}

func TestHTML(t *testing.T) {
	a, b := exampleRecord(), brokenRecord()
	a.Run.Label = "<b>bold</b>"
	var out bytes.Buffer
	if err := WriteHTML(&out, a, b); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	if strings.Count(page, "<svg") != 2 || strings.Count(page, "</svg>") != 2 || strings.Contains(page, "<b>bold") || strings.Contains(page, "<?xml") {
		t.Error("not two pictures, or a label became markup")
	}
	for _, bad := range []string{"src=", "<link", "<script", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(page, `"http://www.w3.org/`, ""), bad) {
			t.Errorf("the page needs %q", bad)
		}
	}
	for _, f := range figures([]*Record{a, b}) {
		for _, rec := range []*Record{a, b} {
			if text := strings.ReplaceAll(f.text(rec), "+", "&#43;"); !strings.Contains(page, "<td>"+text+"</td>") {
				t.Errorf("%s: %s is not on the page", f.name, text)
			}
		}
	}
	if err := WriteHTML(io.Discard, &Record{}); err != nil {
		t.Errorf("a record of nothing: %v", err)
	}
}

// A record with repetitions has a line for each, with what repetitions know, and says that once more nowhere.
func TestBenchOfRepetitions(t *testing.T) {
	rec := exampleRecord()
	rec.Arms = nil
	for i := range 10 {
		rec.Repetitions = append(rec.Repetitions, Repetition{Probes: 1000 + int64(i), NsPerB: Known(80 + float64(i)), ProbesPerS: Known(1e6), LookupsPerProbe: Known(0.01)})
	}
	var b bytes.Buffer
	if err := WriteBench(&b, rec); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "test")
	var perB []float64
	lines, pairs := 0, 0
	for r.Scan() {
		one, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		lines++
		for _, v := range one.Values {
			switch {
			case v.OrigUnit == "ns/B":
				perB = append(perB, v.OrigValue)
			case v.Unit == "ns/B" || v.Unit == "sec/B" && v.OrigUnit == "":
				perB = append(perB, v.Value)
			case v.Unit == "pairs":
				pairs++
			}
		}
	}
	if lines != 11 || len(perB) != 10 || perB[9]-perB[0] != 9 || pairs != 1 {
		t.Errorf("%d lines, ns/B %v, pairs said %d times", lines, perB, pairs)
	}
}
