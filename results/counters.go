package results

import "encoding/json"

// Side counts what became of the records of one input side. Each record has one fate, so Read is the sum of Accepted,
// NullKey, BadKey, Malformed, BadTime, Late, LateIdle and Redelivered. Behind counts accepted records a second time;
// Pending is a level, not a count: the entries that wait now.
type Side struct {
	Read        int64 `json:"read"`
	Accepted    int64 `json:"accepted"`
	NullKey     int64 `json:"null_key"`
	BadKey      int64 `json:"bad_key"`
	Malformed   int64 `json:"malformed"`
	BadTime     int64 `json:"bad_time"`
	Late        int64 `json:"late"`
	LateIdle    int64 `json:"late_idle"`
	Redelivered int64 `json:"redelivered"`
	Behind      int64 `json:"behind"`
	Pending     int64 `json:"pending"`
	// Of a side that waits without its bodies (store: offset), since the process began, batches that were undone included.
	Fetched        int64 `json:"fetched"`          // records fetched again for their bodies
	FetchCacheHits int64 `json:"fetch_cache_hits"` // records that were needed again and had been kept
	Deleted        int64 `json:"deleted"`          // records that were needed and are not in their topic any more
}

// Fates is the number of records that have a fate. It equals Read unless a record got lost on the way.
func (s *Side) Fates() int64 {
	return s.Accepted + s.NullKey + s.BadKey + s.Malformed + s.BadTime + s.Late + s.LateIdle + s.Redelivered
}

func (s *Side) add(o *Side, sign int64) {
	s.Read += sign * o.Read
	s.Accepted += sign * o.Accepted
	s.NullKey += sign * o.NullKey
	s.BadKey += sign * o.BadKey
	s.Malformed += sign * o.Malformed
	s.BadTime += sign * o.BadTime
	s.Late += sign * o.Late
	s.LateIdle += sign * o.LateIdle
	s.Redelivered += sign * o.Redelivered
	s.Behind += sign * o.Behind
	s.Fetched += sign * o.Fetched
	s.FetchCacheHits += sign * o.FetchCacheHits
	s.Deleted += sign * o.Deleted
}

// Filter counts what the filters of the sealed buckets said, checked against the store.
//
// Two denominators, because with many buckets one number alone misleads: FPRatio is per absent B (AbsentQueries: B that
// have no row in any sealed bucket asked; such a B is a false positive once, however many filters erred on it), FPPerFilter
// is per filter asked (FilterFalsePositives ÷ FilterQueries).
type Filter struct {
	Kind                 string      `json:"kind"`            // none, bloom, fuse8, fuse16, fuse32
	Summary              bool        `json:"summary"`         // the filters of the buckets lie side by side, and one look asks them all
	BitsPerKey           *float64    `json:"bits_per_key"`    // of the filters as they were built, before they became lanes
	BytesPerRow          *float64    `json:"bytes_per_row"`   // memory of all filters ÷ rows in sealed buckets, used ones too, on average while measuring
	PresentQueries       int64       `json:"present_queries"` // B for which some sealed bucket asked has a row, used or not
	AbsentQueries        int64       `json:"absent_queries"`
	FalsePositives       int64       `json:"false_positives"`
	StalePositives       int64       `json:"stale_positives"` // the key was there and has been matched
	FPRatio              *float64    `json:"fp_ratio"`
	FPCI95               *[2]float64 `json:"fp_ci95"` // Wilson interval of FPRatio
	FPPredicted          *float64    `json:"fp_predicted"`
	FPPerFilter          *float64    `json:"fp_per_filter"`
	FilterQueries        int64       `json:"filter_queries"`
	FilterFalsePositives int64       `json:"filter_false_positives"`
	FalseNegatives       int64       `json:"false_negatives"` // zero, or the run is incorrect
	BuildNs              int64       `json:"build_ns"`        // all builds added
	BuildFailed          int64       `json:"build_failed"`
	Rebuilt              int64       `json:"rebuilt"` // to leave out keys that have been matched
}

func (f *Filter) add(o *Filter, sign int64) {
	if f.Kind == "" {
		f.Kind, f.Summary = o.Kind, o.Summary
	}
	if f.BitsPerKey == nil {
		f.BitsPerKey = o.BitsPerKey
	}
	if f.FPPredicted == nil {
		f.FPPredicted = o.FPPredicted
	}
	f.PresentQueries += sign * o.PresentQueries
	f.AbsentQueries += sign * o.AbsentQueries
	f.FalsePositives += sign * o.FalsePositives
	f.StalePositives += sign * o.StalePositives
	f.FilterQueries += sign * o.FilterQueries
	f.FilterFalsePositives += sign * o.FilterFalsePositives
	f.FalseNegatives += sign * o.FalseNegatives
	f.BuildNs += sign * o.BuildNs
	f.BuildFailed += sign * o.BuildFailed
	f.Rebuilt += sign * o.Rebuilt
}

// Buckets: Open and Sealed are levels (buckets live now), the totals count since the start, DropMaxNs is the longest drop.
type Buckets struct {
	Open         int64 `json:"open"`
	Sealed       int64 `json:"sealed"`
	SealedTotal  int64 `json:"sealed_total"`
	DroppedTotal int64 `json:"dropped_total"`
	DropMaxNs    int64 `json:"drop_max_ns"`
	Spills       int64 `json:"spills"` // parts of open buckets written early, for want of memory
}

// Counters are the counts of the join, under the names that --stats, every result, /status and the metrics share.
// The pointer fields are ratios that Derive computes (VsArm needs the arm without filters, so its owner sets it).
type Counters struct {
	A               Side     `json:"a"`
	B               Side     `json:"b"`
	Outputs         int64    `json:"outputs"`     // results written: pairs or groups, null rows, tombstones
	Matches         int64    `json:"matches"`     // pairs; of a group each of its B
	UnmatchedA      int64    `json:"unmatched_a"` // A written with null, early ones too, or to the file or topic for those without a partner
	UnmatchedB      int64    `json:"unmatched_b"`
	Early           int64    `json:"early"`     // of unmatched_a: rows that came before their A closed, or that did not wait for it
	Corrected       int64    `json:"corrected"` // pairs or groups that correct such a row
	Retracted       int64    `json:"retracted"` // tombstones for such rows
	Oversize        int64    `json:"oversize"`  // outputs over the limit of who takes them
	Probes          int64    `json:"probes"`    // B that asked, one each, whatever the number of buckets
	Lookups         int64    `json:"lookups"`   // RocksDB point reads
	LookupsPerProbe *float64 `json:"lookups_per_probe"`
	LookupReduction *float64 `json:"lookup_reduction"` // probes ÷ lookups; null without a lookup
	VsArm           *float64 `json:"vs_arm"`           // lookups of the arm without filters ÷ lookups; null without that arm
	// BucketsConsulted are sealed buckets asked, summed over the B that asked any while all of these had their filter: what
	// the window left of the ring.
	BucketsConsulted         int64    `json:"buckets_consulted"`
	BucketsConsultedPerProbe *float64 `json:"buckets_consulted_per_probe"` // ÷ (present_queries + absent_queries)
	Filter                   Filter   `json:"filter"`
	Buckets                  Buckets  `json:"buckets"`
	Unvalidated              bool     `json:"unvalidated"` // validate: lenient, so that documents that are not whole may be among the accepted
}

// Derive computes the ratios from the counts. It may be called again after the counts have changed.
func (c *Counters) Derive() {
	c.LookupsPerProbe = Ratio(c.Lookups, c.Probes)
	c.LookupReduction = Ratio(c.Probes, c.Lookups)
	f := &c.Filter
	f.FPRatio = Ratio(f.FalsePositives, f.AbsentQueries)
	f.FPCI95 = Wilson95(f.FalsePositives, f.AbsentQueries)
	c.BucketsConsultedPerProbe = Ratio(c.BucketsConsulted, f.AbsentQueries+f.PresentQueries)
	f.FPPerFilter = Ratio(f.FilterFalsePositives, f.FilterQueries)
}

// Add adds the counts and levels of another task of the same run; the longest drop is the longest of both. Bits per key and
// the predicted ratio stay those of the first that has them. Call Derive when all are added.
func (c *Counters) Add(o *Counters) {
	c.count(o, 1)
	c.Unvalidated = c.Unvalidated || o.Unvalidated
	c.A.Pending += o.A.Pending
	c.B.Pending += o.B.Pending
	c.Buckets.Open += o.Buckets.Open
	c.Buckets.Sealed += o.Buckets.Sealed
	c.Buckets.DropMaxNs = max(c.Buckets.DropMaxNs, o.Buckets.DropMaxNs)
}

// Sub takes away an earlier snapshot of the same counters, so that what is left is what happened since. Levels (pending,
// open, sealed) and the longest drop stay as they are now. Call Derive afterwards.
func (c *Counters) Sub(earlier *Counters) { c.count(earlier, -1) }

// count adds or subtracts what counts events, and leaves levels and maxima alone.
func (c *Counters) count(o *Counters, sign int64) {
	c.A.add(&o.A, sign)
	c.B.add(&o.B, sign)
	c.Outputs += sign * o.Outputs
	c.Matches += sign * o.Matches
	c.UnmatchedA += sign * o.UnmatchedA
	c.UnmatchedB += sign * o.UnmatchedB
	c.Early += sign * o.Early
	c.Corrected += sign * o.Corrected
	c.Retracted += sign * o.Retracted
	c.Oversize += sign * o.Oversize
	c.Probes += sign * o.Probes
	c.Lookups += sign * o.Lookups
	c.BucketsConsulted += sign * o.BucketsConsulted
	c.Filter.add(&o.Filter, sign)
	c.Buckets.SealedTotal += sign * o.Buckets.SealedTotal
	c.Buckets.DroppedTotal += sign * o.Buckets.DroppedTotal
	c.Buckets.Spills += sign * o.Buckets.Spills
}

// MarshalCounters gives the counters as indented JSON that ends in a line feed: what `joinbench join --stats` writes.
// The ratios are derived on a copy; c is not changed.
func MarshalCounters(c *Counters) ([]byte, error) {
	derived := *c
	derived.Derive()
	normalize(&derived)
	out, err := json.MarshalIndent(&derived, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// Truth is the comparison with what the generator knows must come out. In Join it is embedded by pointer: when nothing is
// known (a join of files) its fields are absent from the JSON, instead of claiming zero.
type Truth struct {
	Missing             int64    `json:"missing"`    // expected lines (pairs, null rows, groups) that did not come
	Spurious            int64    `json:"spurious"`   // lines that came and were not expected
	Duplicated          int64    `json:"duplicated"` // expected lines that came once too often, each time counted
	Missed              int64    `json:"missed"`     // pairs that B asking at once did not find, since their A came later: not missing
	ExpectedMatches     int64    `json:"expected_matches"`
	ExpectedUnmatchedA  int64    `json:"expected_unmatched_a"` // null rows of A, the early ones included
	ExpectedUnmatchedB  int64    `json:"expected_unmatched_b"` // null rows of B
	ExpectedGroups      int64    `json:"expected_groups"`
	ExpectedMatchRatio  *float64 `json:"expected_match_ratio"`
	SealedPartnerProbes int64    `json:"sealed_partner_probes"` // B whose partner is or was in a sealed bucket
}

// PerBucket is one bucket that went: what it held, and what its runs were asked while this process ran.
type PerBucket struct {
	Epoch          int64 `json:"epoch"`
	Rows           int64 `json:"rows"` // in its runs
	Left           int64 `json:"left"` // of them, those that no B had used
	Lookups        int64 `json:"lookups"`
	FalsePositives int64 `json:"false_positives"` // B for which it had no such hash
	StalePositives int64 `json:"stale_positives"` // B that found used rows alone
}

// Join is the part of the record that tells what the join did.
type Join struct {
	Counters
	MatchRatio *float64 `json:"match_ratio"` // matches ÷ probes
	*Truth
	PerBucket []PerBucket `json:"per_bucket"` // in the order in which they went; of several tasks each its own
}

// Derive computes the ratios of the counters and the match ratios. An expected ratio that its owner has set (the one that
// was asked for) is kept.
func (j *Join) Derive() {
	j.Counters.Derive()
	j.MatchRatio = Ratio(j.Matches, j.Probes)
	if j.Truth != nil && j.ExpectedMatchRatio == nil {
		j.ExpectedMatchRatio = Ratio(j.ExpectedMatches, j.Probes)
	}
}
