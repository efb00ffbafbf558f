package results

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// The judgements of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn" // figures are less steady, or less comparable
	CheckBad  = "bad"  // figures mean little, or the run may fail
)

// Check is one thing that was looked at. Advice says what to change; it is empty where all is well.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Value  string `json:"value"`
	Advice string `json:"advice"`
}

// Diagnosis is what a machine gives a measurement.
type Diagnosis struct {
	Status      string      `json:"status"` // the worst of the checks
	Checks      []Check     `json:"checks"`
	Environment Environment `json:"environment"`
	Tool        Tool        `json:"tool"`
}

// Examine looks at the machine, at the disk under dir (made if it is missing, and then removed again) and at the program.
// It takes a little more than a second: for that long it watches whether other machines take this one's time, and it syncs
// and writes a file of 32 MiB in dir. It never fails; what cannot be read is said and not judged.
func Examine(dir string, tool Tool) Diagnosis {
	return examine(doctorProbes{system: system{root: "/"}, sleep: time.Sleep, limits: processLimits, free: freeBytes, disk: probeDisk, clock: clockCost}, dir, tool)
}

// doctorProbes is where a diagnosis gets its readings: the machine, or made-up ones in tests.
type doctorProbes struct {
	system
	sleep  func(time.Duration)
	limits func() (files uint64, ok bool)
	free   func(dir string) (bytes int64, ok bool)
	disk   func(dir string) (diskProbe, error)
	clock  func() time.Duration
}

func examine(p doctorProbes, dir string, tool Tool) Diagnosis {
	d := &diagnosing{p: p, dir: dir, e: p.environment(dir), t: tool}
	for _, look := range []func(*diagnosing){(*diagnosing).processor, (*diagnosing).simd, (*diagnosing).smt, (*diagnosing).governor, (*diagnosing).turbo,
		(*diagnosing).clock, (*diagnosing).others, (*diagnosing).limitCPU, (*diagnosing).memory, (*diagnosing).limitMemory, (*diagnosing).swap,
		(*diagnosing).hugePages, (*diagnosing).fileSystem, (*diagnosing).space, (*diagnosing).diskSpeed, (*diagnosing).files,
		(*diagnosing).goSettings, (*diagnosing).rocksDB, (*diagnosing).build, (*diagnosing).json} {
		look(d)
	}
	out := Diagnosis{Status: CheckOK, Checks: d.checks, Environment: d.e, Tool: tool}
	normalize(&out)
	out.judge()
	return out
}

// Add adds checks of something else than the machine.
func (d *Diagnosis) Add(checks ...Check) {
	d.Checks = append(d.Checks, checks...)
	d.judge()
}

// judge makes the worst of the checks that of all.
func (d *Diagnosis) judge() {
	for _, c := range d.Checks {
		if c.Status == CheckBad || c.Status == CheckWarn && d.Status == CheckOK {
			d.Status = c.Status
		}
	}
}

// diagnosing is an examination on its way.
type diagnosing struct {
	p      doctorProbes
	dir    string
	e      Environment
	t      Tool
	checks []Check
}

func (d *diagnosing) ok(name, value string) { d.add(name, CheckOK, value, "") }

// judge notes a check: bad or warn where that holds, with the advice, else ok.
func (d *diagnosing) judge(name, value string, bad, warn bool, advice string) {
	switch {
	case bad:
		d.add(name, CheckBad, value, advice)
	case warn:
		d.add(name, CheckWarn, value, advice)
	default:
		d.ok(name, value)
	}
}

func (d *diagnosing) add(name, status, value, advice string) {
	d.checks = append(d.checks, Check{name, status, value, advice})
}

// Bad lists the checks that are bad, with what to do.
func (d *Diagnosis) Bad() (out []string) {
	for _, c := range d.Checks {
		if c.Status == CheckBad {
			out = append(out, c.Name+" "+c.Value+": "+c.Advice)
		}
	}
	return out
}

// WriteText writes a diagnosis for people, as WriteText does a record.
func (d *Diagnosis) WriteText(w io.Writer, width int, color bool) error {
	p := &page{width: max(width, minWidth), color: color && os.Getenv("NO_COLOR") == ""}
	styles := map[string]string{CheckOK: styleGreen, CheckWarn: styleYellow, CheckBad: styleRed}
	names, count := 0, map[string]int{}
	for _, c := range d.Checks {
		names = max(names, utf8.RuneCountInString(c.Name))
		count[c.Status]++
	}
	indent := 6 + names + 2
	for _, c := range d.Checks {
		for i, part := range wrap(c.Value, p.width-indent) {
			if i == 0 {
				p.line(p.styled(styles[c.Status], pad(c.Status, 4, false)) + "  " + pad(c.Name, names, false) + "  " + part)
			} else {
				p.line(strings.Repeat(" ", indent) + part)
			}
		}
		if c.Advice == "" {
			continue
		}
		for i, part := range wrap(c.Advice, p.width-indent-2) {
			p.line(strings.Repeat(" ", indent) + []string{"→ ", "  "}[min(i, 1)] + part)
		}
	}
	p.blank()
	p.line(fmt.Sprintf("%d ok, %s, %s", count[CheckOK], p.styled(when(count[CheckWarn] > 0, styleYellow), fmt.Sprintf("%d warn", count[CheckWarn])),
		p.styled(when(count[CheckBad] > 0, styleRed), fmt.Sprintf("%d bad", count[CheckBad]))))
	_, err := io.WriteString(w, p.b.String())
	return err
}
