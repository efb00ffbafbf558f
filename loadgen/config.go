package loadgen

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Epoch is the base time of A record 0 in ms since 1970 (2023-11-14T22:13:20Z).
const Epoch int64 = 1_700_000_000_000

// Limits of a workload. MaxRecords keeps record numbers within the 12 digits
// that order_id and payment_id have; MaxSpan keeps times within 13 digits.
const (
	MaxRecords int64 = 1 << 38
	MaxSpan          = 200 * 365 * 24 * time.Hour
	minRate          = 1e-3 // events per second
	maxRate          = 1e9
)

// Shape is the form of a join key.
type Shape uint8

// The key shapes. All are plain ASCII that JSON prints without escapes.
const (
	ShapeText   Shape = iota // "PAY-", zeros, 16 hex digits; 16 bytes and more, the prefix is cut from 20 down
	ShapeUUID                // 8-4-4-4-12 hex digits; 36 bytes
	ShapeDigits              // decimal digits with leading zeros; 20 bytes and more
)

// String is the name of the shape as flags and results print it.
func (s Shape) String() string {
	switch s {
	case ShapeText:
		return "text"
	case ShapeUUID:
		return "uuid"
	case ShapeDigits:
		return "digits"
	}
	return fmt.Sprintf("shape(%d)", uint8(s))
}

// keySizes is the smallest and the default size of a key of each shape.
func (s Shape) keySizes() (smallest, usual int, ok bool) {
	switch s {
	case ShapeText:
		return 16, 20, true
	case ShapeUUID:
		return 36, 36, true
	case ShapeDigits:
		return 20, 20, true
	}
	return 0, 0, false
}

// Config describes a workload. Zero fields for which a default exists are filled
// by [Config.WithDefaults]; [New] does that itself. Shares are from 0 to 1, rates
// are events per second of event time (how fast they are replayed is the
// caller's), durations are whole milliseconds.
type Config struct {
	Seed uint64

	Pending       int64   // A records before the first B
	AEventsPerSec float64 // 0: such that the Pending A span one After (see DeriveRates)
	BEventsPerSec float64 // 0: such that half of the A find a partner (see DeriveRates)
	BEvents       int64   // B records in all

	// MatchRate is the share of B that have a partner. With OneToMany it includes
	// the duplicates, which pair again; without, they come on top as B that find
	// their partner consumed.
	MatchRate  float64
	Duplicates float64 // share of B with the key of an earlier matched B, in the same partition
	Expired    float64 // share of B with the key of an unmatched A whose window is over
	LateShareA float64 // share of A that are late (rule 8)
	LateShareB float64 // share of B that are late

	Grace    time.Duration // disorder that the join allows inside one partition
	Disorder time.Duration // how far in-time records lie before their base time; at most Grace/2
	Before   time.Duration // window: tA - Before <= tB <= tA + After
	After    time.Duration
	// Ages are the distances in event time between a matched B and its A, in equal
	// parts, each varied around the mean. Each is less than After - 3*Grace. One below 0 has
	// the B before its A, by less than Before - 3*Grace.
	Ages []time.Duration

	KeyShape    Shape
	KeyBytes    int // size of a key; 0: the usual one of the shape
	RecordBytes int // exact size of each JSON value; 0: 256
	PartitionsA int // record i is in partition i mod P at offset i div P; 0: 1
	PartitionsB int

	OneToMany bool // cardinality one-to-many: duplicates pair again
	// Steady starts in the middle of a stream: A whose partner would have come before the first B are left out, as if
	// they were joined already, so that the Pending A before it are those that wait for a B still to come or for none.
	// See steady.go.
	Steady bool
	// Zipf is the exponent of the distribution by which absent keys and duplicates are drawn, 0 to 4; 0: each absent B has
	// a key of its own, and duplicates follow the B that they repeat. See zipf.go.
	Zipf float64

	Family Family // several A and B of one key, and what records say beside it. The last field: see Fingerprint
}

// WithDefaults returns c with zero fields filled: rates ([Config.DeriveRates]),
// Ages (a sixteenth, a quarter and half of After), KeyBytes, RecordBytes,
// PartitionsA, PartitionsB. The slice Ages is copied.
func (c Config) WithDefaults() Config {
	if _, usual, ok := c.KeyShape.keySizes(); ok && c.KeyBytes == 0 {
		c.KeyBytes = usual
	}
	if c.RecordBytes == 0 {
		c.RecordBytes = 256
	}
	if c.PartitionsA == 0 {
		c.PartitionsA = 1
	}
	if c.PartitionsB == 0 {
		c.PartitionsB = 1
	}
	c.Ages = c.ages()
	c.Family = c.Family.normal()
	return c.DeriveRates()
}

// ages returns a copy of Ages, or the default ones.
func (c Config) ages() []time.Duration {
	if len(c.Ages) > 0 {
		return append([]time.Duration(nil), c.Ages...)
	}
	ages := []time.Duration{c.After / 16, c.After / 4, c.After / 2}
	for i := range ages {
		ages[i] = ages[i].Truncate(time.Millisecond)
	}
	return ages
}

// DeriveRates returns c with its zero rates filled. The A rate becomes
// Pending/After: as many A come in during one window as leave it, so the pending
// count stays about Pending (less what one-to-one matches consume); with Steady it
// becomes the one at which Pending A wait whatever matches consume. The B rate
// becomes the one at which half of the in-time A find a partner, and 100 B per A
// where nothing matches.
func (c Config) DeriveRates() Config {
	if c.AEventsPerSec == 0 && c.Pending > 0 && c.After > 0 && c.leavesOut() {
		c.AEventsPerSec = c.steadyRateA()
	}
	if c.AEventsPerSec == 0 && c.Pending > 0 && c.After > 0 {
		c.AEventsPerSec = float64(c.Pending) / c.After.Seconds()
	}
	if c.BEventsPerSec == 0 {
		if m := c.primaryShare(); m > 0 {
			c.BEventsPerSec = c.AEventsPerSec * (1 - c.LateShareA) / (2 * m) * c.bPerMatchedA()
		} else {
			c.BEventsPerSec = 100 * c.AEventsPerSec
		}
	}
	return c
}

// bPerMatchedA is how many B there are for each A that finds one.
func (c Config) bPerMatchedA() float64 { return float64(c.Family.bs()) / float64(c.Family.as()) }

// primaryShare is the share of B that are the first to ask for a partner's key, or with Family.BPerA one of the first.
func (c Config) primaryShare() float64 {
	if c.OneToMany {
		return max(0, c.MatchRate-c.Duplicates)
	}
	return c.MatchRate
}

// Validate reports every fault of a configuration whose defaults are filled, each
// with its value, joined into one error; nil when New would accept it.
func (c Config) Validate() error {
	f := &faults{}
	c.checkCounts(f)
	c.checkShares(f)
	c.checkTimes(f)
	c.checkSizes(f)
	c.checkFamily(f)
	if len(f.list) == 0 { // what follows computes with all of the above
		c.checkSupply(f)
	}
	if len(f.list) == 0 {
		_, err := newPlan(c)
		f.addErr(err)
	}
	return errors.Join(f.list...)
}

// faults collects what is wrong, so that a user sees it all at once.
type faults struct{ list []error }

func (f *faults) add(format string, args ...any) {
	f.list = append(f.list, fmt.Errorf("loadgen: "+format, args...))
}

func (f *faults) addErr(err error) {
	if err != nil {
		f.list = append(f.list, err)
	}
}

func (c Config) checkCounts(f *faults) {
	if c.Pending < 1 || c.Pending > MaxRecords {
		f.add("pending %d is not between 1 and %d", c.Pending, MaxRecords)
	}
	if c.BEvents < 0 || c.BEvents > MaxRecords {
		f.add("b_events %d is not between 0 and %d", c.BEvents, MaxRecords)
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"a_events_per_sec", c.AEventsPerSec}, {"b_events_per_sec", c.BEventsPerSec}} {
		if !(r.v >= minRate && r.v <= maxRate) {
			f.add("%s %g is not between %g and %g", r.name, r.v, minRate, maxRate)
		}
	}
	for _, p := range []struct {
		name string
		v    int
	}{{"partitions_a", c.PartitionsA}, {"partitions_b", c.PartitionsB}} {
		if p.v < 1 || p.v > 1<<16 {
			f.add("%s %d is not between 1 and %d", p.name, p.v, 1<<16)
		}
	}
}

func (c Config) checkShares(f *faults) {
	before := len(f.list)
	for _, s := range []struct {
		name    string
		v, most float64
	}{
		{"match_rate", c.MatchRate, 1}, {"duplicates", c.Duplicates, 1}, {"expired", c.Expired, 1},
		// With more than half of a partition late, a late record may find no
		// in-time one near before it to be late against.
		{"late_share_a", c.LateShareA, 0.5}, {"late_share_b", c.LateShareB, 0.5},
	} {
		if !(s.v >= 0 && s.v <= s.most) {
			f.add("%s %g is not between 0 and %g", s.name, s.v, s.most)
		}
	}
	if !(c.Zipf >= 0 && c.Zipf <= maxZipf) {
		f.add("zipf %g is not between 0 and %d", c.Zipf, maxZipf)
	}
	if len(f.list) > before {
		return
	}
	if c.Duplicates > 0 && c.primaryShare() <= 0 {
		if c.OneToMany {
			f.add("duplicates %g leave nothing of match_rate %g to repeat (one-to-many: match_rate includes them)", c.Duplicates, c.MatchRate)
		} else {
			f.add("duplicates %g have nothing to repeat: match_rate is %g", c.Duplicates, c.MatchRate)
		}
	}
	if sum := c.primaryShare() + c.Duplicates + c.Expired + c.LateShareB; sum > 1+1e-9 {
		f.add("shares of B add up to %g: first matches %g + duplicates %g + expired %g + late_share_b %g must not exceed 1",
			sum, c.primaryShare(), c.Duplicates, c.Expired, c.LateShareB)
	}
}

func (c Config) checkTimes(f *faults) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"grace", c.Grace}, {"disorder", c.Disorder}, {"before", c.Before}, {"after", c.After}} {
		if d.v < 0 || d.v%time.Millisecond != 0 || d.v > MaxSpan {
			f.add("%s %v is not a whole number of ms between 0 and %v", d.name, d.v, MaxSpan)
		}
	}
	if c.Disorder > c.Grace/2 {
		f.add("disorder %v exceeds half of grace %v", c.Disorder, c.Grace)
	}
	if c.After <= 0 {
		f.add("after %v must be greater than 0", c.After)
	}
	for _, a := range c.Ages {
		switch {
		case a == 0 || a%time.Millisecond != 0:
			f.add("match age %v is not a whole number of ms other than 0", a)
		case a >= c.After-3*c.Grace:
			f.add("match age %v is not less than after - 3*grace = %v", a, c.After-3*c.Grace)
		case a < 0 && -a >= c.Before-3*c.Grace:
			f.add("match age %v: a B so long before its A needs before - 3*grace to be more than %v, and it is %v", a, -a, c.Before-3*c.Grace)
		}
	}
	if n := len(c.Ages); n == 0 || n > 1024 {
		f.add("%d match ages: between 1 and 1024 are needed", n)
	}
}

func (c Config) checkSizes(f *faults) {
	smallest, _, ok := c.KeyShape.keySizes()
	switch {
	case !ok:
		f.add("key shape %d is unknown (text, uuid, digits)", uint8(c.KeyShape))
		return
	case c.KeyShape == ShapeUUID && c.KeyBytes != smallest:
		f.add("key_bytes %d: a key of shape uuid has %d bytes", c.KeyBytes, smallest)
		return
	case c.KeyBytes < smallest || c.KeyBytes > 4096:
		f.add("key_bytes %d is not between %d and 4096 (shape %v)", c.KeyBytes, smallest, c.KeyShape)
		return
	}
	if least := smallestRecord(c.KeyBytes, c.Family.Counts); c.RecordBytes < least || c.RecordBytes > 16<<20 {
		f.add("record_bytes %d is not between %d (the smallest record with keys of %d bytes) and %d",
			c.RecordBytes, least, c.KeyBytes, 16<<20)
	}
}

// checkSupply asks whether there are enough A for the matches asked, and whether
// event time stays within its digits.
func (c Config) checkSupply(f *faults) {
	need := c.primaryShare() * c.BEventsPerSec / c.bPerMatchedA()
	if have := c.AEventsPerSec * (1 - c.LateShareA); need > have*(1+1e-9) {
		f.add("match_rate needs %g new partners per second (share %g of %g B/s), but only %g A/s are in time (a_events_per_sec %g, late_share_a %g)",
			need, c.primaryShare(), c.BEventsPerSec, have, c.AEventsPerSec, c.LateShareA)
	}
	indexes := c.beforeB()
	if math.IsInf(indexes, 1) {
		f.addErr(c.tooFewWait())
		return
	}
	history, run := indexes/c.AEventsPerSec, float64(c.BEvents)/c.BEventsPerSec
	if span := history + run; span > MaxSpan.Seconds() {
		f.add("the workload spans %.0f s of event time (%.0f s before the first B), more than %v", span, history, MaxSpan)
	}
	indexes += float64(c.leadA())
	if n := indexes + run*c.AEventsPerSec; n > float64(MaxRecords) {
		f.add("the workload has %.0f A records (%.0f before the first B and %.0f s at %g/s), more than %d", n, indexes, run, c.AEventsPerSec, MaxRecords)
	}
}

// ms is a duration in whole milliseconds.
func ms(d time.Duration) int64 { return d.Milliseconds() }

// share turns a share into fixed point (see strata), cut to [0, one].
func share(x float64) uint64 {
	if !(x > 0) {
		return 0
	}
	return min(one, uint64(math.Round(x*float64(one))))
}
