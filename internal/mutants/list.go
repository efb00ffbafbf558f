package main

// mutant is one bug: a text that stands once in a file, and what to put in its place.
type mutant struct {
	name, file, old, new string
}

// mutants are bugs of the kinds that a join over buckets invites.
var mutants = []mutant{
	// Window off by one.
	{"window: its last millisecond is left out", "core/pair.go",
		"e.Time <= w.to", "e.Time < w.to"},
	{"window: the oldest bucket is asked one millisecond late", "core/window.go",
		"buckets.EpochOf(at-t.cfg.After, width)", "buckets.EpochOf(at-t.cfg.After+1, width)"},
	{"window: B ask before the grace of A is over", "core/gate_take.go",
		"due := g.wm[A] - g.cfg.Before - g.cfg.Grace", "due := g.wm[A] - g.cfg.Before"},

	// A filter's false negative.
	{"filter: one member in 32 is denied", "fusefilter/kernel.c",
		"cells[s->c]) == 0) {", "cells[s->c]) == 0 && (s->m & 31)) {"},
	{"filter: one cell in 32 of a lane is wrong", "fusefilter/lanes.go",
		"uint64(c)<<shift", "uint64(c^T((i&31)/31))<<shift"},
	{"filter: a lane lacks the last row of its bucket", "core/lanes.go",
		"p.hashes = mergeAll(p.scan.Hashes)", "p.hashes = mergeAll(p.scan.Hashes); p.hashes = p.hashes[:max(len(p.hashes)-1, 0)]"},
	{"filter: a bucket of one key counts as empty", "fusefilter/set.go",
		"case f.keys == 0:", "case f.keys <= 1:"},

	// A lost journal record.
	{"journal: the last committed record is not replayed", "buckets/recover.go",
		"if n > r.committed {", "if n >= r.committed {"},
	{"journal: it is cut one batch too far", "buckets/seal.go",
		"cut = min(cut, n)", "cut = min(cut, n+1)"},
	{"journal: a replay forgets what was used", "buckets/recover.go",
		"if b != nil && !b.Used(row) {", "if false {"},
	{"journal: it is cut before the bitmaps are written", "buckets/seal.go",
		"w.put(r.prefix+bitsKey(b.Epoch), b.encodeBits())", "_ = b.encodeBits()"},

	// A stale index of an arena.
	{"index: the last bucket's entries are still in it", "fusefilter/openindex.go",
		"have <= 4*groups {\n\t\tclear(x.tags)\n", "have <= 4*groups {\n"},
	{"index: a chain ends after two rows", "fusefilter/openindex.go",
		"x.next = append(x.next, x.entries[e].head)", "x.next = append(x.next, x.next[x.entries[e].head])"},

	// A bucket dropped too early.
	{"drop: one bucket early", "core/gate_ring.go",
		"Floor: buckets.EpochOf(l.Closed, c.Width)", "Floor: buckets.EpochOf(l.Closed, c.Width) + 1"},
	{"drop: the grace of B is forgotten", "core/release.go",
		"A: {Closed: wm[B] - c.After - c.Grace", "A: {Closed: wm[B] - c.After"},

	// A check that is ignored.
	{"check: equal hashes are taken for equal keys", "core/pair.go",
		" && string(e.Key) == string(w.key)", ""},
	{"check: the type of a key does not count", "core/pair.go",
		"string(e.Key) == string(w.key)", "string(e.Key[1:]) == string(w.key[1:])"},
	{"check: a hash has one chunk", "core/pair.go",
		"!buckets.HasMore(value)", "true"},

	// What comes out for its time, ends and groups.
	{"early: a null row of an A that has paired", "core/release.go",
		"if !b.Used(row) {", "if true {"},
	{"early: it is certain before the grace is over", "core/release.go",
		"Early: wm[B] - c.Early - c.Grace", "Early: wm[B] - c.Early"},
	{"early: null rows come again after a restart", "core/task.go",
		"atEarly: let.Early}", "atEarly: minTime}"},
	{"early: no pair says that it corrects", "core/pair.go",
		"k = Corrected", "k = 0"},
	{"complete_on: an A that stays goes on pairing", "core/pair.go",
		"if ends {\n\t\tt.ring.End(f.bucket, f.row)", "if false {\n\t\tt.ring.End(f.bucket, f.row)"},
	{"collect: a group is complete one B early", "core/collect_take.go",
		"have >= wanted", "have+1 >= wanted"},
	{"wait: B close by their own watermark", "core/release.go",
		"B: {Closed: wm[A] - c.Before", "B: {Closed: wm[B] - c.Before"},
	{"wait: no B waits", "core/both.go",
		"w.phase, err = releasing, w.keep(w.b, w.a, w.rows[B], w.cfg.Cardinality == ManyToMany)", "w.phase = releasing"},
	{"closing: rows in RAM are forgotten when they become a run", "core/maintain.go",
		"\tt.forgetRelease(b.Slot)\n\tif t.ring.AtSlot", "\tif t.ring.AtSlot"},

	{"closing: it comes before the matches of its batch", "core/engine.go",
		"if err := j.Ask(part.rows[B]); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn j.Release(limits)",
		"if err := j.Release(limits); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn j.Ask(part.rows[B])"},
	{"closing: a bucket that is read in parts has one", "core/release.go",
		"if !scan.More() {", "if true {"},
	{"complete_on: an A that has paired is not ended", "core/pair.go",
		"ends := t.cfg.CompleteOn != EndNever", "ends := first && t.cfg.CompleteOn != EndNever"},
	{"wait: an event that met another at once is unmatched later", "core/both.go",
		"in.storeAll(w.met, true)", "in.storeAll(w.met, false)"},
	{"null rows without a key go by the type of A", "pipeline/sink_results.go",
		"if !s.nulls[side] {", "if !s.nulls[core.A] {"},
	{"arrival: a partition that has not come holds nobody back", "core/gate_time.go",
		"case !g.counts(p):\n\t\tcase p.idle:", "case !g.counts(p) || p.watermark() == minTime:\n\t\tcase p.idle:"},
	{"outputs: the first match of the next part is lost", "core/many.go",
		"if w.begun {\n\t\ti = w.row\n", "if w.begun {\n\t\ti, ok = x.Next(w.row)\n"},

	// Others.
	{"late at equality", "core/gate.go",
		"c.Time[row]+g.cfg.Grace < p.m", "c.Time[row]+g.cfg.Grace <= p.m"},
	{"a record that is read twice counts twice", "core/gate.go",
		"p.next = c.Offset[p.at] + 1", "p.next = c.Offset[p.at]"},
	{"one-to-many: a seal leaves out what was used", "core/engine.go",
		"KeepUsed: c.keepsUsed(A)", "KeepUsed: false"},
	{"results are committed that have not left the process", "pipeline/sink.go",
		"if err := w.Flush(); err != nil {\n\t\t\t\treturn nil, err\n\t\t\t}\n", ""},
	{"spill: the rows behind it are numbered from one too many", "buckets/bucket.go",
		"arena{pool: b.pool}, b.rows, 0", "arena{pool: b.pool}, b.rows + 1, 0"},
	{"spill: the journal is cut although the rows are in no run yet", "buckets/bucket.go",
		"if b.part != nil && b.part.first != 0 {", "if false {"},
	{"the error of a drop is swallowed", "core/maintain.go",
		"j.err = j.drop.Run()", "_ = j.drop.Run()"},
}
