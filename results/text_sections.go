package results

import (
	"fmt"
	"slices"
	"strings"
)

// filterName is the filter in a few words: fuse16, in lanes.
func filterName(f *Filter) string {
	switch {
	case f.Kind == "":
		return "not known"
	case f.Summary:
		return f.Kind + ", in lanes"
	}
	return f.Kind
}

// fpSentence sets the measured ratio beside what the mathematics predict.
func fpSentence(f *Filter) string {
	if f.FPRatio == nil {
		return "no absent B was asked"
	}
	text := Percent(*f.FPRatio)
	ci, predicted := f.FPCI95, f.FPPredicted
	var beside []string
	if ci != nil {
		beside = append(beside, fmt.Sprintf("95 %%: %s to %s", strings.TrimSuffix(Percent(ci[0]), " %"), Percent(ci[1])))
	}
	if predicted != nil {
		part := "predicted " + Percent(*predicted)
		if ci != nil && *predicted >= ci[0] && *predicted <= ci[1] {
			part += ", inside"
		} else if ci != nil {
			part += ", outside"
		}
		beside = append(beside, part)
	}
	if len(beside) == 0 {
		return text
	}
	return text + " (" + strings.Join(beside, "; ") + ")"
}

func (p *page) filter(rec *Record) {
	f, j := &rec.Join.Filter, &rec.Join
	p.title("FILTER")
	kind := filterName(f)
	if f.BitsPerKey != nil {
		kind += ", " + significant(*f.BitsPerKey, 4) + " bits per key"
	}
	if f.BytesPerRow != nil {
		kind += ", " + significant(*f.BytesPerRow, 3) + " bytes per row"
	}
	p.row("kind", kind)
	p.row("false positives per B", fpSentence(f))
	p.row("", fmt.Sprintf("%s of %s absent B", Count(f.FalsePositives), Count(f.AbsentQueries)))
	if f.FPPerFilter != nil {
		p.row("  per filter asked", fmt.Sprintf("%s (%s of %s asked)", Percent(*f.FPPerFilter),
			Count(f.FilterFalsePositives), Count(f.FilterQueries)))
	}
	p.row("stale positives", Count(f.StalePositives))
	p.row("false negatives", Count(f.FalseNegatives))
	p.row("lookups", fmt.Sprintf("%s (%s per B)", Count(j.Lookups), orDash(j.LookupsPerProbe, plain)))
	reduction := "no lookup was made"
	if j.LookupReduction != nil {
		reduction = times(*j.LookupReduction) + " fewer than B"
	}
	if j.VsArm != nil {
		reduction += ", " + times(*j.VsArm) + " fewer than without filters"
	}
	p.row("lookup reduction", reduction)
	p.row("built", fmt.Sprintf("in %s, %s failed", nanos(f.BuildNs), Count(f.BuildFailed)))
}

func (p *page) arms(rec *Record) {
	if len(rec.Arms) == 0 {
		return
	}
	head, rows := armTable(rec.Arms)
	head[0] = "ARMS"
	p.wideTable(head, rows)
	for _, a := range rec.Arms {
		if a.Note != "" {
			p.row(a.Name, a.Note)
		}
	}
}

func (p *page) memory(rec *Record) {
	c := &rec.Cost
	if c.RSSMaxBytes == nil && c.GoHeapBytes == nil && c.RocksDBBytes == nil {
		return
	}
	p.title("MEMORY")
	p.row("anonymous, peak", orDash(c.RSSMaxBytes, Bytes))
	p.row("  of it Go heap", orDash(c.GoHeapBytes, Bytes))
	for _, part := range []struct {
		label string
		bytes *int64
	}{{"    arenas", c.ArenaBytes}, {"    filters", c.FilterBytes}, {"    indexes, hashes", c.IndexBytes}} {
		if part.bytes != nil {
			p.row(part.label, Bytes(*part.bytes))
		}
	}
	p.row("  of it RocksDB", orDash(c.RocksDBBytes, Bytes))
	p.row("mapped files, peak", orDash(c.RSSFileMaxBytes, Bytes))
}

func (p *page) disk(rec *Record) {
	p.title("DISK")
	p.row("peak", orDash(rec.Cost.DiskMaxBytes, Bytes))
	p.diskOverTime(rec.Intervals)
	s := &rec.Storage
	if s.BytesWritten != nil || s.BytesRead != nil {
		text := orDash(s.BytesWritten, Bytes) + " written, " + orDash(s.BytesRead, Bytes) + " read"
		if s.WriteAmp != nil {
			text += ", write amplification " + significant(*s.WriteAmp, 3)
		}
		p.row("RocksDB", text)
	}
	if s.StallRatio != nil {
		p.row("writes stalled", Percent(*s.StallRatio)+" of the time")
	}
	p.drops(rec.Drops)
}

// diskOverTime draws the disk in use while measuring, or over the whole run if it was not sampled then: the rise from
// nothing before would flatten the steps that the dropped buckets make.
func (p *page) diskOverTime(intervals []Interval) {
	sizes, when := diskSizes(intervals, "measure"), " while measuring"
	if len(sizes) < 2 {
		sizes, when = diskSizes(intervals, ""), ""
	}
	if len(sizes) == 0 {
		return
	}
	ends := fmt.Sprintf("  %s to %s%s", Bytes(slices.Min(sizes)), Bytes(slices.Max(sizes)), when)
	p.row("over time", sparkline(sizes, min(40, p.width-2-labelWidth-2-len(ends)))+ends)
}

// diskSizes are the samples of one phase, or of all.
func diskSizes(intervals []Interval, phase string) []int64 {
	var sizes []int64
	for _, i := range intervals {
		if i.DiskBytes != nil && (phase == "" || i.Phase == phase) {
			sizes = append(sizes, *i.DiskBytes)
		}
	}
	return sizes
}

// shownDrops is how many drops the text lists; a long run has thousands, and the JSON has them all.
const shownDrops = 12

func (p *page) drops(drops []Drop) {
	if len(drops) == 0 {
		p.row("buckets dropped", "none")
		return
	}
	p.row("buckets dropped", Count(int64(len(drops))))
	var rows [][]string
	for _, d := range drops[:min(len(drops), shownDrops)] {
		before, after, freed := "–", "–", "–"
		if d.DiskBeforeBytes != nil && d.DiskAfterBytes != nil {
			unit, name := byteUnit(max(*d.DiskBeforeBytes, *d.DiskAfterBytes)) // one unit, so that the two compare
			before = inByteUnit(*d.DiskBeforeBytes, unit, name)
			after = inByteUnit(*d.DiskAfterBytes, unit, name)
			freed = Bytes(*d.DiskBeforeBytes - *d.DiskAfterBytes)
		}
		rows = append(rows, []string{fmt.Sprintf("bucket %d", d.Epoch), nanos(d.TNs), before, "→", after, freed, nanos(d.DropNs)})
	}
	p.table([]string{"", "at", "before", "", "after", "freed", "took"}, rows)
	if more := len(drops) - shownDrops; more > 0 {
		p.row("", fmt.Sprintf("and %s more", Count(int64(more))))
	}
}

func (p *page) buckets(rec *Record) {
	b := &rec.Join.Buckets
	p.title("BUCKETS")
	p.row("now", fmt.Sprintf("%s open, %s sealed", Count(b.Open), Count(b.Sealed)))
	p.row("in all", fmt.Sprintf("%s sealed, %s dropped, the slowest drop took %s", Count(b.SealedTotal),
		Count(b.DroppedTotal), nanos(b.DropMaxNs)))
}

// input lists the fates of the records; those that no record met are left out.
func (p *page) input(rec *Record) {
	a, b := &rec.Join.A, &rec.Join.B
	rows := [][]string{{"read", Count(a.Read), Count(b.Read)}, {"accepted", Count(a.Accepted), Count(b.Accepted)}}
	for _, r := range []struct {
		label string
		a, b  int64
	}{{"null key", a.NullKey, b.NullKey}, {"bad key", a.BadKey, b.BadKey}, {"malformed", a.Malformed, b.Malformed},
		{"bad time", a.BadTime, b.BadTime}, {"late", a.Late, b.Late}, {"late after idleness", a.LateIdle, b.LateIdle},
		{"redelivered", a.Redelivered, b.Redelivered}, {"accepted behind", a.Behind, b.Behind}} {
		if r.a != 0 || r.b != 0 {
			rows = append(rows, []string{r.label, Count(r.a), Count(r.b)})
		}
	}
	rows = append(rows, []string{"waiting at the end", Count(a.Pending), Count(b.Pending)})
	p.table([]string{"INPUT", "A", "B"}, rows)
}

func (p *page) phases(rec *Record) {
	if len(rec.Phases) == 0 {
		return
	}
	var rows [][]string
	for _, ph := range rec.Phases {
		rows = append(rows, []string{ph.Name, nanos(ph.StartNs), nanos(ph.DurationNs), Count(ph.Records)})
	}
	p.table([]string{"PHASES", "from", "took", "records"}, rows)
}

func (p *page) environment(rec *Record) {
	e, t := &rec.Environment, &rec.Tool
	if e.OS == "" {
		return
	}
	p.title("ENVIRONMENT")
	join := func(parts ...string) string {
		kept := parts[:0]
		for _, part := range parts {
			if part != "" {
				kept = append(kept, part)
			}
		}
		return strings.Join(kept, ", ")
	}
	p.row("processor", join(e.CPU, fmt.Sprintf("%d cores", e.Cores), fmt.Sprintf("GOMAXPROCS %d", e.GOMAXPROCS),
		when(e.NUMA > 1, fmt.Sprintf("NUMA nodes %d", e.NUMA)), when(e.Governor != "", "governor "+e.Governor)))
	noLimit := func(text string) string { return when(text != "–", text) }
	limits := join(when(e.Cgroup.CPUs != nil, orDash(e.Cgroup.CPUs, plain)+" cores"), noLimit(orDash(e.Cgroup.MemoryBytes, Bytes)))
	if limits == "" {
		limits = "none"
	}
	p.row("memory", join(Bytes(e.MemBytes), when(e.THP != "", "huge pages "+e.THP)))
	p.row("cgroup limits", limits)
	limit := "no GOMEMLIMIT"
	if e.GOMEMLIMIT != nil {
		limit = "GOMEMLIMIT " + Bytes(*e.GOMEMLIMIT)
	}
	gogc := fmt.Sprintf("GOGC %d", e.GOGC)
	if e.GOGC < 0 {
		gogc = "GOGC off"
	}
	p.row("Go", join(t.Go, gogc, limit))
	p.row("system", join(strings.TrimSpace(e.OS+"/"+e.Arch), e.Kernel))
	p.row("data lies on", join(e.FS, e.Disk))
	dirty := when(t.Dirty, "with changes")
	p.row("joinbench", join(t.Version, when(t.Commit != "", "commit "+t.Commit), dirty, when(len(t.BuildTags) > 0, "tags "+strings.Join(t.BuildTags, ","))))
	assertions := when(t.RocksDB != "", "release build")
	if t.RocksDBAssertions {
		assertions = "WITH ASSERTIONS"
	}
	p.row("instrumented", strings.Join(t.Instrumented, ", "))
	p.row("libraries", join(when(t.RocksDB != "", "RocksDB "+t.RocksDB), assertions, when(t.JSONEngine != "", "JSON "+t.JSONEngine)))
	p.row("workload", join(rec.Run.WorkloadFingerprint, when(rec.Run.Tasks > 0, fmt.Sprintf("tasks %d", rec.Run.Tasks))))
	p.row("command", strings.Join(rec.Run.Argv, " "))
}

// when is text where cond holds.
func when(cond bool, text string) string {
	if cond {
		return text
	}
	return ""
}
