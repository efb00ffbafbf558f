package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzDecode: any bytes as a saved record are refused with ErrNotResult, or read. What is read can be judged and rendered in
// every format, and what the json format prints is a record again that prints the same.
func FuzzDecode(f *testing.F) {
	data, err := Marshal(exampleRecord())
	if err != nil {
		f.Fatal(err)
	}
	small := `{"schema":"joinbench.result","schema_version":"1.0.0"`
	for _, text := range []string{string(data), small + "}", small, small + "} x", "", " \n", "null", "[]", "{}", `{"schema":null}`, `{"schema":1}`,
		`{"schema":"other","schema_version":"1.0.0"}`, `{"schema":"joinbench.result","schema_version":"2.0.0"}`, `{"schema":"joinbench.result","schema_version":"1"}`,
		`{"schema":"joinbench.result","schema_version":"1.9.9","new":{"x":[1]}}`, `{"schema":"joinbench.result","schema_version":"01.-1."}`,
		small + `,"run":{"config":{"a":[1,2]}}}`, small + `,"run":{"config":null}}`, small + `,"run":{"config":"\ud800"}}`, small + `,"run":{"started_at":"yesterday","ended_at":"\u001b[31m"}}`,
		small + `,"intervals":[{"t_ns":-9223372036854775808,"probes_per_s":1e308},{"t_ns":9223372036854775807,"probes_per_s":-1e308,"phase":"measure"}]}`,
		small + `,"intervals":[{"phase":"measure","disk_bytes":9223372036854775807},{"phase":"measure","disk_bytes":-1}],"phases":[{"name":"measure","start_ns":-1,"duration_ns":-1,"records":-5}]}`,
		small + `,"drops":[{"disk_before_bytes":-9223372036854775808,"disk_after_bytes":9223372036854775807,"drop_ns":-1}]}`,
		small + `,"latency":{"count":-1},"load":{"mode":"open","offered_per_s":0}}`, small + `,"latency":{"histogram":"AAAA"}}`,
		small + `,"join":{"a":{"read":-1},"probes":-9223372036854775808,"lookups":-1,"filter":{"kind":"x","absent_queries":-5,"false_positives":7,"fp_ci95":[1,-1]},"missing":-1}}`,
		small + `,"join":{"probes":1,"filter":{"absent_queries":1,"false_positives":9223372036854775807,"fp_predicted":0}}}`,
		small + `,"verdict":{"status":"great","exit_code":-7,"reasons":["a\nb|c"]},"arms":[{"name":"|"},{}],"thresholds":[{"expr":"` + "`" + `"}]}`,
		small + `,"cost":{"ns_per_b":1e-320,"unit_ns":5e-324,"rss_max_bytes":-1}}`, small + `,"tool":{"build_tags":null},"environment":{"cores":-1,"cgroup":{"cpus":-0.0}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := Decode(data, "r.json")
		if err != nil {
			if !errors.Is(err, ErrNotResult) || !strings.HasPrefix(err.Error(), "r.json: ") {
				t.Fatalf("error %v does not wrap ErrNotResult or name the file", err)
			}
			return
		}
		Judge(rec)
		for _, format := range []string{"csv", "bench", "html", "svg"} { // a record of one interval has no picture
			if err := Render(io.Discard, rec, format, TextOptions{}); err != nil && (format != "svg" || len(rec.Intervals) > 1) {
				t.Fatalf("%s: %v", format, err)
			}
		}
		for _, format := range []string{"text", "md"} {
			for _, width := range []int{0, 1, 40, 200} {
				if err := Render(io.Discard, rec, format, TextOptions{Width: width, Color: width == 40}); err != nil {
					t.Fatalf("%s: %v", format, err)
				}
			}
		}
		var out bytes.Buffer
		if err := Render(&out, rec, "json", TextOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(out.Bytes(), "again.json")
		if err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		second, err := Marshal(again)
		if err != nil || !json.Valid(second) || !bytes.Equal(second, out.Bytes()) {
			t.Fatalf("printed again (%v):\n%s\nwas\n%s", err, second, &out)
		}
	})
}
