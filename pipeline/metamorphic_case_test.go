package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/internal/failpoint"
	"joinbench/internal/oracle"
)

// metaCase is one way to run one workload. Its outputs are the oracle's, whatever is in it. All of it is drawn from one
// seed, and all of it can be written down: a shrunk case is no longer what its seed says.
type metaCase struct {
	Seed   uint64
	Oracle oracle.Config // the join: keys, window, grace, type, cardinality and the other rules
	Format string
	Spread time.Duration // max_spread, 0 for auto
	Width  time.Duration // state.width, 0 for auto

	Buckets, Tasks        int
	Hash                  string
	Late, Dead, Unmatched bool
	MaxPending            int64 // a limit that is never reached; 0: none
	// Lives follow each other on one state directory: each but the last is stopped on its way.
	Lives []metaLife
}

// metaLife is one process, or one call of Join, from its start to its end. All of these may change when a join is resumed.
type metaLife struct {
	Filter  string
	Summary bool
	Sync    string
	Batch   int
	Inline  bool
	Arena   int64
	Build   string // which builds of filters fail
	Output  int    // matches that the sink is given at once, 0 for many
	Fetch   string // the order in which records arrive
	Chunk   int    // so many at a time, unless that is evenly
	Stop    metaStop
}

// metaStop is how a life ends before its input does.
type metaStop struct {
	Kind  string // "" to the end; stopContext, stopError, stopKill
	Share int    // stopContext: at so many thousandths of all records
	Point string // the others: at a failpoint
	Hit   int    // the how manyeth hit of it in this life
}

const (
	stopContext = "context"
	stopError   = "error"
	stopKill    = "kill"
)

// metaInput is a case with its input.
type metaInput struct {
	Case metaCase
	A, B []byte
}

// Values of the axes; a new one is one more word here. What this build's configuration refuses is left out.
var (
	metaFilters = accepted("state.filter", "none", "fuse8", "fuse16", "fuse32", "bloom")
	metaStores  = accepted("a.store", "projection", "full")
	metaSyncs   = accepted("state.sync", "none", "interval", "batch")
	metaBuckets = []int{2, 4, 16, 64}
	metaTasks   = []int{1, 2, 3}
	metaBatches = []int{1, 7, 64, 1000}
	metaArenas  = []int64{0, 4 << 10, 64 << 10}
	metaHashes  = []string{"normal", "constant", "8-bit", "top 8 bits"}
	metaOutputs = []int{0, 1, 10}
	metaBuilds  = []string{"never", "half", "all", "first 3"}
	metaPoints  = reachable(failpoint.All())
)

// accepted are those values of a key that the configuration takes.
func accepted(key string, values ...string) (ok []string) {
	for _, v := range values {
		j := config.Default()
		j.A.Key, j.B.Key = []string{"@key"}, []string{"@key"}
		if j.Set("window.after", "1s", "test") == nil && j.Set(key, v, "test") == nil && j.Validate() == nil {
			ok = append(ok, v)
		}
	}
	return ok
}

// reachable leaves out the points that inputs of this size never come to: the journal is cut between two seals when it
// has 64 MiB. (The model test of buckets comes to them.)
func reachable(points []string) (few []string) {
	for _, p := range points {
		if p != failpoint.CutBefore && p != failpoint.CutAfter {
			few = append(few, p)
		}
	}
	return few
}

// metaHash is the hash of a name; nil for the normal one. Both of 8 bits have 256 values; one differs in every byte, so
// that the tasks share the keys, the other in the top byte alone, so that indexes and filters see zeros.
func metaHash(name string) func([]byte) uint64 {
	switch name {
	case "constant":
		return func([]byte) uint64 { return 0x5555 }
	case "8-bit":
		return func(key []byte) uint64 { return xxh3.Hash(key) & 0xff * 0x0101010101010101 }
	case "top 8 bits":
		return func(key []byte) uint64 { return xxh3.Hash(key) & (0xff << 56) }
	}
	return nil
}

func pickOf[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// drawInput draws a case and its input from a seed.
func drawInput(seed uint64) metaInput {
	var in metaInput
	c := &in.Case
	c.Seed = seed
	c.Oracle, in.A, in.B, c.Format = oracle.RandomWorkload(oracle.NewRand(seed))
	rng := rand.New(rand.NewPCG(seed, 0x6d657461))
	c.drawTimes(rng)
	c.drawRules(rng, &in)
	c.Buckets, c.Tasks = pickOf(rng, []int{2, 2, 4, 4, 16, 16, 64}), pickOf(rng, metaTasks)
	c.Oracle.A.StoreFull, c.Oracle.B.StoreFull = pickOf(rng, metaStores) == "full", pickOf(rng, metaStores) == "full"
	c.Hash = pickOf(rng, append([]string{"normal", "normal", "normal"}, metaHashes...))
	c.Late, c.Dead, c.Unmatched = rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
	c.drawSpan(rng)
	c.boundSeals(rng, &in)
	c.drawEnd(rng, &in)
	l := c.drawLife(rng)
	for range pickOf(rng, []int{0, 0, 0, 0, 0, 1, 1, 1, 2, 3}) {
		l.Stop = c.drawStop(rng, l.Batch)
		c.Lives = append(c.Lives, l)
		if rng.IntN(3) == 0 {
			l = c.drawLife(rng)
		}
	}
	l.Stop = metaStop{}
	c.Lives = append(c.Lives, l)
	return in
}

// drawTimes varies window and grace away from what the workload was made for: its events lie on the edges of that, and so
// come to lie beside them.
func (c *metaCase) drawTimes(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		return
	}
	drawn := []time.Duration{c.Oracle.Before, c.Oracle.After, c.Oracle.Grace}
	for _, d := range []*time.Duration{&c.Oracle.Before, &c.Oracle.After, &c.Oracle.Grace} {
		ms := time.Millisecond
		*d = pickOf(rng, []time.Duration{*d, *d, 0, *d + ms, max(*d, ms) - ms, 2 * *d, (*d / 2).Truncate(ms), pickOf(rng, drawn)})
	}
}

// most pairs of a case: a few hundred records a side may have a hundred thousand in many-to-many.
const mostPairs = 2000

// drawRules draws the rules that the join goes by. Many-to-many gives way where it gives too many pairs.
func (c *metaCase) drawRules(rng *rand.Rand, in *metaInput) {
	oracle.DrawRules(rng, &c.Oracle)
	if c.Oracle.Cardinality == oracle.ManyToMany {
		if want, err := oracle.Expect(c.Oracle, in.A, in.B, c.Format); err == nil && len(want.Pairs) > mostPairs {
			c.Oracle.Cardinality = oracle.OneToMany
		}
	}
}

// drawEnd draws whether the end of the files is the end of the streams, and a limit that all records together do not reach.
func (c *metaCase) drawEnd(rng *rand.Rand, in *metaInput) {
	c.Oracle.NoDrain = rng.IntN(5) == 0
	if rng.IntN(4) == 0 {
		c.MaxPending = int64(len(splitLines(in.A)) + len(splitLines(in.B)))
	}
}

// expect is the oracle's answer. Without a drain it counts how far the files are read, which the ring has a say in.
func (c *metaCase) expect(in *metaInput) (*oracle.Expected, error) {
	cfg := c.Oracle
	if cfg.NoDrain {
		j, err := c.config(&c.Lives[0])
		if err != nil {
			return nil, err
		}
		cfg.MaxSpread, cfg.Width, cfg.Buckets = j.Spread(), j.Width(), c.Buckets
	}
	return oracle.Expect(cfg, in.A, in.B, c.Format)
}

// drawSpan draws max_spread and the width: mostly as small as rule 13 allows, so that the ring turns often.
func (c *metaCase) drawSpan(rng *rand.Rand) {
	least := c.Oracle.Before + c.Oracle.Grace + time.Millisecond
	c.Spread = pickOf(rng, []time.Duration{least, least, least, least + time.Duration(1+rng.IntN(100))*time.Millisecond, 3 * least, 0})
	if rng.IntN(4) == 0 {
		if j, err := c.config(&metaLife{Filter: "none", Sync: "none"}); err == nil {
			c.Width = j.Width() * time.Duration(1+rng.IntN(4))
		}
	}
}

// manySeals is how many buckets a case may have, but for a few: each costs up to 10 ms, and with a narrow window every A
// has a bucket of its own. Unbounded, one case in twenty took as long as all the others.
const manySeals = 48

// boundSeals makes buckets wider until there are not too many.
func (c *metaCase) boundSeals(rng *rand.Rand, in *metaInput) {
	want, err := oracle.Expect(c.Oracle, in.A, in.B, c.Format)
	j, err2 := c.config(&metaLife{Filter: "none", Sync: "none"})
	if err != nil || err2 != nil || rng.IntN(32) == 0 {
		return // what is wrong shows when the case is run
	}
	for width := j.Width(); ; width *= 2 {
		if (epochs(want.AcceptedA(), width)+c.waiting(want, width))*c.Tasks <= manySeals {
			return
		}
		c.Width = 2 * width
	}
}

// epochs counts the buckets in which events lie.
func epochs(events []*oracle.Event, width time.Duration) int {
	in := map[int64]bool{}
	for _, ev := range events {
		in[buckets.EpochOf(ev.Time, ms(width))] = true
	}
	return len(in)
}

// waiting is the number of buckets of B.
func (c *metaCase) waiting(want *oracle.Expected, width time.Duration) int {
	if c.Oracle.Probe != oracle.Wait {
		return 0
	}
	return epochs(want.AcceptedB(), width)
}

func (c *metaCase) drawLife(rng *rand.Rand) metaLife {
	fetch := pickOf(rng, append([]string{fetchEvenly, fetchEvenly, fetchEvenly}, metaFetches...))
	if c.Oracle.NoDrain {
		fetch = fetchEvenly // how far is read depends on what is there to read
	}
	return metaLife{Fetch: fetch, Chunk: pickOf(rng, []int{1, 7, 40}), Output: pickOf(rng, append([]int{0, 0}, metaOutputs...)), Filter: pickOf(rng, metaFilters), Summary: rng.IntN(3) > 0, Sync: pickOf(rng, append([]string{"none", "none"}, metaSyncs...)),
		Batch: pickOf(rng, append([]int{1, 7, 7, 64, 64}, metaBatches...)), Inline: rng.IntN(2) == 0, Arena: pickOf(rng, append([]int64{0}, metaArenas...)),
		Build: pickOf(rng, append([]string{"never", "never", "never"}, metaBuilds...))}
}

// drawStop draws where a life ends. Points that are passed once a batch are left alone for a while, so that there is a
// state to lose.
func (c *metaCase) drawStop(rng *rand.Rand, batch int) metaStop {
	s := metaStop{Kind: pickOf(rng, []string{stopContext, stopError, stopKill})}
	if s.Kind == stopContext {
		s.Share = 1 + rng.IntN(999)
		return s
	}
	s.Point = pickOf(rng, metaPoints)
	for c.Tasks == 1 && strings.HasPrefix(s.Point, "commit.") { // with one task the journal's write has the commit record
		s.Point = pickOf(rng, metaPoints)
	}
	s.Hit = 1 + rng.IntN(6)
	switch group, _, _ := strings.Cut(s.Point, "."); group {
	case "journal", "commit", "output":
		s.Hit = 1 + rng.IntN(max(1, 300/batch))
	}
	return s
}

// config is the configuration of one life.
func (c *metaCase) config(l *metaLife) (*config.Join, error) {
	j, err := joinConfig(c.Oracle, variant{tasks: c.Tasks, buckets: c.Buckets, filter: l.Filter})
	if j == nil {
		return nil, err
	}
	stores := c.stores()
	j.A.Store, j.B.Store = stores[0], stores[1]
	j.MaxSpread, j.State.Width, j.State.Sync, j.MaxPending = c.Spread, c.Width, l.Sync, c.MaxPending
	return j, j.Validate()
}

// stores is what the state keeps of A and of B.
func (c *metaCase) stores() []string {
	words := map[bool]string{false: "projection", true: "full"}
	return []string{words[c.Oracle.A.StoreFull], words[c.Oracle.B.StoreFull]}
}

// stops is the number of lives that are to be stopped.
func (c *metaCase) stops() int { return len(c.Lives) - 1 }

// sideOutputs names the side outputs that the case has.
func (c *metaCase) sideOutputs() string {
	var names []string
	for _, side := range []struct {
		name string
		on   bool
	}{{"late", c.Late}, {"dead", c.Dead}, {"unmatched", c.Unmatched}} {
		if side.on {
			names = append(names, side.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "+")
}

// String says the case in words.
func (c *metaCase) String() string {
	or := func(d time.Duration) string {
		if d == 0 {
			return "auto"
		}
		return d.String()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %s\n", c.Seed, c.rules())
	fmt.Fprintf(&s, "  format %s, window -%v +%v, grace %v, max_spread %s\n", c.Format, c.Oracle.Before, c.Oracle.After, c.Oracle.Grace, or(c.Spread))
	fmt.Fprintf(&s, "  %d tasks, %d buckets, width %s, store %s, hash %s, side outputs ", c.Tasks, c.Buckets, or(c.Width), strings.Join(c.stores(), " and "), c.Hash)
	s.WriteString(c.sideOutputs())
	for i := range c.Lives {
		fmt.Fprintf(&s, "\n  life %d: %s", i+1, &c.Lives[i])
	}
	return s.String()
}

// rules says in words what is not the plainest join.
func (c *metaCase) rules() string {
	o := &c.Oracle
	words := []string{o.Type, o.Cardinality}
	add := func(on bool, format string, args ...any) {
		if on {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(o.Probe != oracle.Aligned, "probe %s", o.Probe)
	add(o.Collect.Mode != "", "collect %s %s %s", o.Collect.Mode, o.Collect.Path, o.Collect.Equals)
	add(o.Early > 0, "early %v", o.Early)
	add(o.Retract, "retract")
	add(o.CompleteOn.Emit != "", "complete_on %s %s with %s", o.CompleteOn.Field, o.CompleteOn.Equals, o.CompleteOn.Emit)
	add(o.OutputKey != oracle.JoinKey, "output key %s", o.OutputKey)
	add(o.NoDrain, "no drain")
	add(c.MaxPending > 0, "max_pending %d", c.MaxPending)
	return strings.Join(words, ", ")
}

// String says the life in words.
func (l *metaLife) String() string {
	text := fmt.Sprintf("filter %s, summary %v, batches of %d, sync %s, inline %v, arenas %d, failing builds: %s, arrival %s by %d, outputs of %d; ", l.Filter, l.Summary,
		l.Batch, l.Sync, l.Inline, l.Arena, l.Build, l.Fetch, l.Chunk, l.Output)
	switch s := l.Stop; s.Kind {
	case "":
		return text + "to the end"
	case stopContext:
		return text + fmt.Sprintf("stopped between two batches at %.1f %% of the records", float64(s.Share)/10)
	default:
		return text + fmt.Sprintf("%s at hit %d of %s", s.Kind, s.Hit, s.Point)
	}
}
