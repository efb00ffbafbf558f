package results

import (
	"strings"
	"testing"
	"time"
)

// TestGeneratorBound: what invalidates an open loop, and what is a result all the same.
func TestGeneratorBound(t *testing.T) {
	ms := func(n int) *int64 { return new(int64(time.Duration(n) * time.Millisecond)) }
	good := Load{Mode: "open", OfferedPerS: Known(1000), AchievedPerS: Known(1000),
		Generator: Generator{CeilingPerS: Known(5000), LagP99Ns: ms(1), BlockedRatio: Known(0)}}
	for _, c := range []struct {
		name    string
		change  func(*Load)
		invalid string
		warning string
	}{
		{"good", func(*Load) {}, "", ""},
		{"closed", func(l *Load) {
			*l = Load{Mode: "closed", AchievedPerS: Known(1), Generator: Generator{CeilingPerS: Known(0.5)}}
		}, "", ""},
		{"just enough", func(l *Load) { l.AchievedPerS, l.Generator.BlockedRatio = Known(990), Known(0.5) }, "", ""},
		{"generator slow", func(l *Load) { l.AchievedPerS, l.Generator.BlockedRatio = Known(989), Known(0.021) }, "generator-bound", ""},
		{"join slow", func(l *Load) { l.AchievedPerS, l.Generator.BlockedRatio = Known(500), Known(0.02) }, "", "did not keep up"},
		{"dropped", func(l *Load) { l.AchievedPerS, l.Dropped = Known(500), 77 }, "", "77 dropped"},
		{"ceiling", func(l *Load) { l.Generator.CeilingPerS = Known(999) }, "makes 999.0 /s", ""},
		{"lag", func(l *Load) { l.Generator.LagP99Ns = ms(21) }, "schedule was not kept", ""},
		{"lag at the limit", func(l *Load) { l.Generator.LagP99Ns = ms(20) }, "", ""},
		{"nothing known", func(l *Load) { l.Generator = Generator{} }, "", ""},
	} {
		l := good
		c.change(&l)
		v := Judge(&Record{Run: Run{Complete: true}, Load: &l})
		if (c.invalid != "") != (v.Status == StatusInvalid && v.ExitCode == ExitInvalid) || !strings.Contains(strings.Join(v.Reasons, ","), c.invalid) {
			t.Errorf("%s: verdict %+v", c.name, v)
		}
		if (c.warning != "") != (len(v.Warnings) > 0) || !strings.Contains(strings.Join(v.Warnings, ","), c.warning) {
			t.Errorf("%s: warnings %v", c.name, v.Warnings)
		}
	}
}
