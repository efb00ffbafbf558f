package results

import (
	"fmt"
	"strings"
)

// Kafka is a run through a broker: the join as a process of its own that reads two topics and writes a third, beside a consumer
// that only reads topic B, with the same client and settings.
//
// Both take turns (Rounds). BarePerS and ServePerS are the medians of the rounds, in B a second, and Ratio is that of the rounds'
// own ratios; each is measured over the middle nine tenths of B, so that connecting, what was read ahead and the last batch are in
// neither. In an open loop there are no rounds; instead B come at a rate, and LagMax is the greatest number of records that
// were written and not joined yet, LagSlopePerS the trend of that number.
type Kafka struct {
	Brokers         []string     `json:"brokers"`  // the releases that they seem to be
	Embedded        bool         `json:"embedded"` // joinbench's own broker, in a process of its own
	Delivery        string       `json:"delivery"`
	Partitions      int          `json:"partitions"` // of each topic
	RecordBytes     int          `json:"record_bytes"`
	Compression     string       `json:"compression"` // of the input
	Produced        int64        `json:"produced"`    // records that were loaded
	Consumed        int64        `json:"consumed"`    // of them, those that each join read; the fewest
	Lost            int64        `json:"lost"`        // results that are missing, in all rounds
	Duplicated      int64        `json:"duplicated"`
	BarePerS        *float64     `json:"bare_per_s"`
	ServePerS       *float64     `json:"serve_per_s"`
	Ratio           *float64     `json:"ratio"` // of the rounds: serve_per_s ÷ bare_per_s
	LagMax          *int64       `json:"lag_max"`
	LagSlopePerS    *float64     `json:"lag_slope_per_s"`
	NegativeLatency int64        `json:"negative_latency"` // results that came before their B was due: 0, for there is one clock
	Unanswered      int64        `json:"unanswered"`       // results that came only with the end, when no record moved time on: not in latency.e2e
	Lag             []KafkaLag   `json:"lag"`
	Rounds          []KafkaRound `json:"rounds"`
	Split           *KafkaSplit  `json:"split"`
}

// KafkaLag is how many records were written and not joined yet at one moment.
type KafkaLag struct {
	TNs     int64 `json:"t_ns"` // since the schedule began
	Records int64 `json:"records"`
}

// KafkaRound is one turn of both. CatchUpNs is what the join took for the A that waited before the first B.
type KafkaRound struct {
	BarePerS       *float64    `json:"bare_per_s"`
	ServePerS      *float64    `json:"serve_per_s"`
	Ratio          *float64    `json:"ratio"`
	BareBytesPerS  *float64    `json:"bare_bytes_per_s"` // of keys and values
	CatchUpNs      int64       `json:"catch_up_ns"`
	ServeRSSBytes  *int64      `json:"serve_rss_bytes"`
	BareCPUNsPerB  *float64    `json:"bare_cpu_ns_per_b"`
	ServeCPUNsPerB *float64    `json:"serve_cpu_ns_per_b"`
	Split          *KafkaSplit `json:"split"`
}

// KafkaSplit is where a B's CPU time goes, and that of the A which come with it, in ns per B; of several rounds the medians. CPUNs is what
// all threads of the join take; a profile of them from the first B on shares it out: SocketNs is the network and the client's
// requests and answers, DecodeNs their batches (decompression, records, handing these over), JSONNs keys, times and kept fields,
// CoreNs the join with its state, ProduceNs results, changelog and commits, GCNs collecting garbage, OtherNs the rest of the
// runtime. CommitWaitNs is no CPU: the engine waits for Kafka while decoders read on.
type KafkaSplit struct {
	CPUNs        *float64 `json:"cpu_ns"`
	SocketNs     *float64 `json:"socket_ns"`
	DecodeNs     *float64 `json:"decode_ns"`
	JSONNs       *float64 `json:"json_ns"`
	CoreNs       *float64 `json:"core_ns"`
	ProduceNs    *float64 `json:"produce_ns"`
	GCNs         *float64 `json:"gc_ns"`
	OtherNs      *float64 `json:"other_ns"`
	CommitWaitNs *float64 `json:"commit_wait_ns"`
}

// parts are the CPU's, with what they are called.
func (s *KafkaSplit) parts() []splitPart {
	return []splitPart{{"socket and client", &s.SocketNs}, {"decode batches", &s.DecodeNs}, {"JSON", &s.JSONNs}, {"core", &s.CoreNs},
		{"produce and commit", &s.ProduceNs}, {"garbage collection", &s.GCNs}, {"runtime, other", &s.OtherNs}, {"CPU, all threads", &s.CPUNs}}
}

type splitPart struct {
	label string
	ns    **float64
}

// Derive computes what the rounds and the lag say together.
func (k *Kafka) Derive() {
	middle := func(of func(*KafkaRound) *float64) *float64 {
		var all []float64
		for i := range k.Rounds {
			if v := of(&k.Rounds[i]); v != nil {
				all = append(all, *v)
			}
		}
		if len(all) == 0 {
			return nil
		}
		return Known(median(all))
	}
	for i := range k.Rounds {
		if r := &k.Rounds[i]; r.BarePerS != nil && r.ServePerS != nil {
			r.Ratio = RatioF(*r.ServePerS, *r.BarePerS)
		}
	}
	k.BarePerS = middle(func(r *KafkaRound) *float64 { return r.BarePerS })
	k.ServePerS = middle(func(r *KafkaRound) *float64 { return r.ServePerS })
	k.Ratio = middle(func(r *KafkaRound) *float64 { return r.Ratio })
	k.Split = nil
	for i := range k.Rounds {
		if k.Rounds[i].Split != nil {
			k.Split = &KafkaSplit{CommitWaitNs: middle(func(r *KafkaRound) *float64 { return r.split().CommitWaitNs })}
		}
	}
	if k.Split != nil {
		for i, part := range k.Split.parts() {
			*part.ns = middle(func(r *KafkaRound) *float64 { return *r.split().parts()[i].ns })
		}
	}
	k.deriveLag()
}

// split is the round's, or one of nothing.
func (r *KafkaRound) split() *KafkaSplit {
	if r.Split == nil {
		return &KafkaSplit{}
	}
	return r.Split
}

// deriveLag finds the greatest lag, and its slope.
func (k *Kafka) deriveLag() {
	if len(k.Lag) == 0 {
		return
	}
	var most int64
	var seconds, records []float64
	for _, p := range k.Lag {
		most = max(most, p.Records)
		seconds, records = append(seconds, float64(p.TNs)/1e9), append(records, float64(p.Records))
	}
	k.LagMax = &most
	if slope, ok := TheilSen(seconds, records); ok {
		k.LagSlopePerS = Known(slope)
	}
}

func (p *page) kafka(k *Kafka) {
	if k == nil {
		return
	}
	p.title("KAFKA")
	broker := "Apache Kafka's requests up to " + strings.Join(k.Brokers, ", ")
	if k.Embedded {
		broker = "joinbench broker, no measure of Kafka's speed"
	}
	p.row("broker", broker)
	p.row("topics", fmt.Sprintf("%d partitions, %s a record, %s", k.Partitions, Bytes(int64(k.RecordBytes)), k.Compression))
	p.row("delivery", k.Delivery)
	p.row("records", fmt.Sprintf("%s loaded, %s joined; of results %s lost, %s duplicated", Count(k.Produced), Count(k.Consumed), Count(k.Lost), Count(k.Duplicated)))
	if k.LagMax != nil {
		text := Count(*k.LagMax) + " records at most"
		if k.LagSlopePerS != nil {
			text += ", trend " + significant(*k.LagSlopePerS, 3) + " a second"
		}
		p.row("lag", text)
	}
	if k.Unanswered > 0 {
		p.row("results at the end", Count(k.Unanswered)+", not in LATENCY: no later record moved time on")
	}
	p.kafkaRounds(k)
	p.kafkaSplit(k.Split)
}

func (p *page) kafkaRounds(k *Kafka) {
	if len(k.Rounds) == 0 {
		return
	}
	var rows [][]string
	for i, r := range k.Rounds {
		rows = append(rows, []string{fmt.Sprintf("round %d", i+1), orDash(r.ServePerS, Rate), orDash(r.BarePerS, Rate), orDash(r.Ratio, Percent)})
	}
	if len(k.Rounds) > 1 {
		rows = append(rows, []string{"median", orDash(k.ServePerS, Rate), orDash(k.BarePerS, Rate), orDash(k.Ratio, Percent)})
	}
	p.table([]string{"B EVENTS", "joined", "bare consumer", "of bare"}, rows)
}

func (p *page) kafkaSplit(s *KafkaSplit) {
	if s == nil || s.CPUNs == nil {
		return
	}
	var rows [][]string
	for _, part := range s.parts() {
		ns := *part.ns
		share := "–"
		if ns != nil && *s.CPUNs > 0 {
			share = Percent(*ns / *s.CPUNs)
		}
		rows = append(rows, []string{part.label, orDash(ns, func(v float64) string { return fixed(v, 0) }), share})
	}
	rows = append(rows, []string{"waiting for commits", orDash(s.CommitWaitNs, func(v float64) string { return fixed(v, 0) }), ""})
	p.table([]string{"COST OF A B", "ns", "of CPU"}, rows)
}
