package results

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// benchUnit is one measurement of the Go benchmark format: what benchstat is told of its unit, and where its value is.
type benchUnit struct {
	unit  string
	about string // key=value pairs of the Unit line
	value func(*Record) *float64
	ofArm func(*Arm) *float64        // nil: arms do not know it
	ofRep func(*Repetition) *float64 // nil: repetitions do not know it
}

const (
	benchLower  = "better=lower"
	benchHigher = "better=higher"
	benchExact  = " assume=exact" // must not vary between repetitions
)

func benchUnits() []benchUnit {
	counts := func(n func(*Record) int64) func(*Record) *float64 {
		return func(r *Record) *float64 { return new(float64(n(r))) }
	}
	truth := func(n func(*Truth) int64) func(*Record) *float64 {
		return func(r *Record) *float64 {
			if r.Join.Truth == nil {
				return nil
			}
			return new(float64(n(r.Join.Truth)))
		}
	}
	field := func(name string) func(*Arm) *float64 {
		return func(a *Arm) *float64 { return armNumber(a, name) }
	}
	return []benchUnit{
		{"ns/B", benchLower, func(r *Record) *float64 { return r.Cost.NsPerB }, field("ns_per_b"), func(r *Repetition) *float64 { return r.NsPerB }},
		{"ns/A", benchLower, func(r *Record) *float64 { return r.Cost.NsPerA }, field("ns_per_a"), nil},
		{"background-ns/A", benchLower, func(r *Record) *float64 { return r.Cost.BackgroundNsPerA }, field("background_ns_per_a"), nil},
		{"record-ns/B", benchLower, func(r *Record) *float64 { return r.Cost.RecordNsPerB }, nil, nil},
		{"unit-ns", benchLower, func(r *Record) *float64 { return r.Cost.UnitNs }, field("unit_ns"), nil},
		{"B/s", benchHigher, func(r *Record) *float64 {
			if r.Load == nil {
				return nil
			}
			return r.Load.AchievedPerS
		}, nil, func(r *Repetition) *float64 { return r.ProbesPerS }},
		{"rss-bytes", benchLower, func(r *Record) *float64 { return floatOf(r.Cost.RSSMaxBytes) }, field("rss_max_bytes"), nil},
		{"disk-bytes", benchLower, func(r *Record) *float64 { return floatOf(r.Cost.DiskMaxBytes) }, field("disk_max_bytes"), nil},
		{"allocs/B", benchLower, func(r *Record) *float64 { return r.Cost.AllocsPerProbe }, nil, nil},
		{"cpu-s/M", benchLower, func(r *Record) *float64 { return r.Cost.CPUSPerMillion }, field("cpu_s_per_million"), nil},
		{"lookups/B", benchLower, func(r *Record) *float64 { return r.Join.LookupsPerProbe }, field("lookups_per_probe"), func(r *Repetition) *float64 { return r.LookupsPerProbe }},
		{"fp-ppm", benchLower, func(r *Record) *float64 { return ppm(r.Join.Filter.FPRatio) }, func(a *Arm) *float64 { return ppm(a.FPRatio) }, nil},
		{"restart-ns", benchLower, func(r *Record) *float64 {
			if r.Recovery == nil {
				return nil
			}
			return floatOf(r.Recovery.ReadyNs)
		}, field("restart_ns"), nil},
		{"lost", benchLower, func(*Record) *float64 { return nil }, field("lost"), nil},
		{"pairs", benchHigher + benchExact, counts(func(r *Record) int64 { return r.Join.Matches }), func(a *Arm) *float64 { return new(float64(a.Matches)) }, nil},
		{"missing", benchLower + benchExact, truth(func(t *Truth) int64 { return t.Missing }), field("missing"), nil},
		{"spurious", benchLower + benchExact, truth(func(t *Truth) int64 { return t.Spurious }), field("spurious"), nil},
		{"duplicated", benchLower + benchExact, truth(func(t *Truth) int64 { return t.Duplicated }), field("duplicated"), nil},
	}
}

func ppm(ratio *float64) *float64 {
	if ratio == nil {
		return nil
	}
	return Known(*ratio * 1e6)
}

// WriteBench writes records in the Go benchmark format, which benchstat reads: a line for each repetition with what it
// knows, one for each record with the rest, and one for each arm. The iterations are B that asked. benchstat sets two files side by side only where all
// header keys are equal, so that another commit needs `benchstat -ignore commit`. The records are only read.
func WriteBench(w io.Writer, recs ...*Record) error {
	var b strings.Builder
	units := benchUnits()
	for _, u := range units {
		fmt.Fprintf(&b, "Unit %s %s\n", u.unit, u.about)
	}
	set := map[string]string{}
	for _, rec := range recs {
		benchHeader(&b, rec, set)
		name := benchName(rec)
		for i := range rec.Repetitions {
			rep := &rec.Repetitions[i]
			benchLine(&b, name, rep.Probes, units, func(u *benchUnit) *float64 {
				if u.ofRep == nil {
					return nil
				}
				return u.ofRep(rep)
			})
		}
		benchLine(&b, name, rec.Join.Probes, units, func(u *benchUnit) *float64 {
			if u.ofRep != nil && len(rec.Repetitions) > 0 {
				return nil // said ten times
			}
			return u.value(rec)
		})
		for i := range rec.Arms {
			a := &rec.Arms[i]
			benchLine(&b, name+"/arm="+benchWord(a.Name), a.Probes, units, func(u *benchUnit) *float64 {
				if u.ofArm == nil {
					return nil
				}
				return u.ofArm(a)
			})
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// benchHeader writes the keys that differ from what is set already.
func benchHeader(b *strings.Builder, rec *Record, set map[string]string) {
	for _, kv := range [][2]string{{"goos", rec.Environment.OS}, {"goarch", rec.Environment.Arch}, {"pkg", "joinbench"}, {"cpu", rec.Environment.CPU},
		{"host", rec.Environment.HostID}, {"commit", rec.Tool.Commit}, {"fingerprint", rec.Run.WorkloadFingerprint}} {
		key, value := kv[0], strings.Join(strings.Fields(kv[1]), " ")
		if set[key] != value {
			set[key] = value
			fmt.Fprintf(b, "%s: %s\n", key, value)
		}
	}
}

func benchName(rec *Record) string {
	f := &rec.Join.Filter
	summary := "off"
	if f.Summary {
		summary = "on"
	}
	name := "BenchmarkJoin/profile=" + benchWord(rec.Run.Profile)
	if rec.Run.Label != "" {
		name += "/label=" + benchWord(rec.Run.Label)
	}
	return name + fmt.Sprintf("/filter=%s/summary=%s/tasks=%d", benchWord(f.Kind), summary, rec.Run.Tasks)
}

// benchWord makes a text fit for a name: without blanks and without what separates its parts. A last "-2" would be read as
// GOMAXPROCS; names of ours end in tasks= or arm=, so that only an arm's name is at risk.
func benchWord(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '/' || r == '=' || r == '"' || r == ':' {
			return '_'
		}
		return r
	}, text)
	if i := strings.LastIndexByte(text, '-'); i >= 0 {
		if _, err := strconv.Atoi(text[i+1:]); err == nil {
			text = text[:i] + "_" + text[i+1:]
		}
	}
	if text == "" {
		return "none"
	}
	return text
}

func benchLine(b *strings.Builder, name string, iterations int64, units []benchUnit, value func(*benchUnit) *float64) {
	fmt.Fprintf(b, "%s %d", name, max(iterations, 1))
	for i := range units {
		if v := value(&units[i]); v != nil && Known(*v) != nil {
			fmt.Fprintf(b, " %s %s", strconv.FormatFloat(*v, 'f', -1, 64), units[i].unit)
		}
	}
	b.WriteByte('\n')
}
