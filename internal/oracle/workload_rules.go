package oracle

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Fields that every record of a workload may have, and the rules that look at them. Those of the other side are there too,
// and mean nothing.
const (
	statusPath = "$.status" // of B: complete_on
	typePath   = "$.type"   // of B: collect: {marker: …}
	countPath  = "$.n"      // of A: collect: {count: …}
)

// RandomRules is RandomWorkload with a join that uses the other rules too: DrawRules, and not more than some thousand pairs.
func RandomRules(rng *rand.Rand) (cfg Config, aFile, bFile []byte, format string) {
	const most = 3000
	cfg, aFile, bFile, format = RandomWorkload(rng)
	DrawRules(rng, &cfg)
	if cfg.Cardinality == ManyToMany {
		if e, err := Expect(cfg, aFile, bFile, format); err == nil && len(e.Pairs) > most {
			cfg.Cardinality = OneToMany
		}
	}
	return cfg, aFile, bFile, format
}

// DrawRules draws type, cardinality, probe, collect, early, retract, output key and complete_on for a workload of
// RandomWorkload, whose window may have been changed since: a combination that is allowed, and of times that its events lie
// on the edges of. Many-to-many may give as many pairs as there are A times B.
func DrawRules(rng *rand.Rand, cfg *Config) {
	w := &workload{rng: rng}
	cfg.Type = pick(w, Inner, Left, Left, Right, Outer, Outer)
	cfg.Cardinality = pick(w, OneToOne, OneToOne, OneToMany, OneToMany, OneToMany, ManyToMany, ManyToMany)
	cfg.Probe = pick(w, Aligned, Aligned, Aligned, Aligned, Wait, Wait, Immediate)
	cfg.Collect, cfg.CompleteOn = Collect{}, CompleteOn{}
	cfg.Early, cfg.Retract, cfg.OutputKey = 0, false, JoinKey
	if i := slices.IndexFunc(cfg.A.Keep, func(f Field) bool { return f.Path == "$.id" }); i >= 0 && w.chance(0.5) {
		cfg.OutputKey = cfg.A.Keep[i].Name
	}
	if cfg.Probe != Aligned {
		return
	}
	if cfg.Cardinality == OneToMany && w.chance(0.75) {
		cfg.Collect = pick(w, Collect{Mode: Timeout}, Collect{Mode: Count, Path: countPath},
			Collect{Mode: Marker, Path: typePath, Equals: pick(w, watchedTexts...)})
	}
	if cfg.nulls('a') && cfg.After > time.Millisecond && w.chance(0.6) {
		cfg.Early = w.early(cfg.After)
		cfg.Retract = w.chance(0.5)
	}
	if w.chance(0.35) {
		cfg.CompleteOn = CompleteOn{statusPath, pick(w, watchedTexts...), pick(w, EmitPair, EmitUnmatched, EmitNothing)}
	}
}

// early is a time within the window: most events lie a whole number of ticks behind another, so most often a part of the
// window that is one too.
func (w *workload) early(after time.Duration) time.Duration {
	d := pick(w, after/2, after/5, after/10, after-after/5, after-time.Millisecond, time.Millisecond).Truncate(time.Millisecond)
	return min(max(d, time.Millisecond), after-time.Millisecond)
}

// watchedTexts are what a field may have to say.
var watchedTexts = []string{"declined", "declined", "declined", "5", "true"}

// addWatched adds the fields that rules look at: with what they look for, with what only looks like it, or not at all.
func (w *workload) addWatched(o *object) {
	for _, name := range []string{"status", "type"} {
		switch {
		case w.chance(w.ends):
			o.add(name, pick(w, w.quote("declined"), `"declined"`, `"declined"`, "5", `"5"`, "true", `"true"`))
		case w.chance(0.8):
			o.add(name, pick(w, `"confirmed"`, `"Declined"`, `"declined "`, `""`, "null", "false", "5.0", "50", `["declined"]`, `{"declined":true}`))
		}
	}
	switch {
	case w.chance(0.7):
		o.add("n", pick(w, "1", "2", "2", "3", "4", "7"))
	case w.chance(0.8):
		o.add("n", pick(w, "0", "-1", "1000000", "999999", "2.5", `"3"`, "null", "true", "[2]", "99999999999999999999"))
	}
}
