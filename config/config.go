package config

import "time"

// Join is the whole tree of join.yaml. Start from Default or Parse; the zero value is not a configuration.
// Durations of event time are whole milliseconds. Fields that only Kafka needs are unused by file joins.
type Join struct {
	A, B Side // A is the pending side, B the probe side
	// Of store: offset, with which A wait without their bodies: what becomes of a result whose A is not in its topic any more,
	// and the bytes of records that were fetched and are kept.
	Deleted    string // the key a.deleted: emit | dead | stop
	FetchCache int64  // the key a.fetch_cache

	Window      Window
	Grace       time.Duration // G: the disorder allowed inside one partition
	MaxSkew     time.Duration // how far ahead of the record's own time an event time may be; 0 = no check
	MaxSpread   time.Duration // 0 = auto, see Spread
	IdleTimeout time.Duration // after it a silent partition is left out of its side's watermark; 0 = never
	IdleAdvance time.Duration // 0 = off

	Type        string // inner | left | right | outer
	Cardinality string // one-to-one | one-to-many | many-to-many
	Probe       string // aligned | wait | immediate
	Collect     Collect
	Early       time.Duration // null rows of A so long after their time; less than Window.After; 0 = off
	Retract     bool          // tombstones for null rows that a pair corrects: Output.Key must be unique per A
	CompleteOn  *CompleteOn   // nil = off
	MaxPending  int64         // entries; 0 = no limit
	Unmatched   string        // drop | topic; inner joins
	Validation  string        // the key "validate": strict | lenient

	State    State
	Output   Output
	Topics   Topics
	Delivery string // at-least-once | exactly-once
	Kafka    Kafka

	from origins // where each value came from, and the text for excerpts
}

// Side says what one input needs to be joined.
type Side struct {
	Topic    string
	Key      []string    // "@key" or JSON paths; the first that exists is the join key
	KeyType  string      // exact | string
	Time     string      // "@timestamp", "arrival", or a JSON path
	TimeUnit string      // ms | us | ns | s | rfc3339; for a path only
	Store    string      // projection | full; A has offset too
	Keep     []KeepField // empty = the whole value
	Kind     string      // stream | table | broadcast
}

// KeepField is one field of the value that the output carries.
type KeepField struct {
	Name string // name in the output; empty = the last element of Path
	Path string
}

// Window is the interval tA − Before ≤ tB ≤ tA + After, both ends inclusive. The key "within" sets both.
type Window struct{ Before, After time.Duration }

// Collect says when the group of B of one A comes out.
type Collect struct {
	Mode   string // eager | timeout | count | marker
	Count  string // path in A, for count
	Marker Marker // for marker
}

// Marker is a B that completes its group: Field, a path in B, equals Equals.
//
// What is compared is text: of a string its decoded characters ("d\u0065clined" is declined), of a number its digits as
// written (1.0 is not 1), of true and false these words. Null, objects, arrays and a field that is absent equal nothing. So
// equals: 5 is both the number and the string.
type Marker struct{ Field, Equals string }

// CompleteOn is a B that ends its A: Field, a path in B, equals Equals, compared as Marker says.
//
// With collect the group gathers the pairs that would come out otherwise: the end lets it out at once, as the A's close would,
// with the B that ends it if Emit is pair.
type CompleteOn struct {
	Field, Equals string
	Emit          string // pair | unmatched | nothing
}

// State says where and how the pending events are kept.
type State struct {
	Dir     string
	Buckets int           // 2 to 64
	Width   time.Duration // 0 = auto, see Join.Width
	Filter  string        // fuse8 | fuse16 | fuse32 | bloom | none
	Memory  int64         // bytes, shared by all tasks
	Tasks   int           // 0 = auto, see TaskCount
	// Sync is when log and results are made to outlive a power cut: none (never), interval (about once a second) or batch
	// (each batch). With several tasks a state that was not synced batch by batch may have to be thrown away after one.
	Sync string
}

// Output says where results go.
type Output struct {
	Topic string
	// Key is what records are keyed by: "join-key", or the output name of a kept field of a or b. A row without that field (a
	// null row of the other side) is keyed by its join key.
	Key string
}

// Topics are the side outputs; empty = none.
type Topics struct{ Late, Dead, Unmatched string }

// Kafka is how to reach it.
type Kafka struct {
	Brokers     []string
	Group       string
	Instance    string
	Isolation   string // read_committed | read_uncommitted
	Changelog   string // auto | on | off
	Repartition bool
	TLS         TLS
	SASL        SASL
}

// TLS is how connections to the brokers are encrypted. CA, Cert and Key are files in PEM form.
type TLS struct {
	Enabled    string // auto (if anything else of this is set) | true | false
	CA         string // whom to trust; empty = whom the system trusts
	Cert, Key  string // the client's own, both or none
	ServerName string // in the brokers' certificates; empty = the host connected to
	// InsecureSkipVerify takes any certificate: for trying things out. With CA or ServerName it is refused.
	InsecureSkipVerify bool
}

// On says whether connections are encrypted.
func (t *TLS) On() bool {
	return t.Enabled == "true" || t.Enabled == "auto" && (t.CA != "" || t.Cert != "" || t.Key != "" || t.ServerName != "" || t.InsecureSkipVerify)
}

// SASL is how the client says who it is. What it proves that with is in one of several places, of which one is set.
type SASL struct {
	Mechanism    string // none | plain | scram-sha-256 | scram-sha-512 | oauthbearer
	User         string // plain, scram
	Password     string // plain, scram: the password itself; never shown
	PasswordFile string // or a file that holds it,
	PasswordEnv  string // or a variable of the environment
	TokenFile    string // oauthbearer: a file that holds the token, read again for each connection
	TokenEnv     string // or a variable of the environment
}

// KeepsChangelog says whether a changelog is kept: unless it is off.
func (j *Join) KeepsChangelog() bool { return j.Kafka.Changelog != "off" }

// ChangelogTopic is the changelog's topic.
func (j *Join) ChangelogTopic() string { return j.Kafka.Group + "-changelog" }

const (
	deletedDefault    = "emit"
	fetchCacheDefault = 64 << 20
	// minSpread is the least default of max_spread (rule 13).
	minSpread = 10 * time.Minute
	// maxDuration bounds every duration, so that the sums of rule 13 stay far from overflow.
	maxDuration = 10 * 365 * 24 * time.Hour
)

// Default returns the configuration of a join of which nothing was said. It lacks what has no sensible
// default: a.key, b.key and window. The grace is small on purpose: a large hidden one keeps cold keys for
// hours. The caller owns the result.
func Default() *Join {
	side := Side{KeyType: "exact", Time: "@timestamp", TimeUnit: "ms", Store: "projection", Kind: "stream"}
	return &Join{
		A: side, B: side, Deleted: deletedDefault, FetchCache: fetchCacheDefault,
		Grace: 10 * time.Second, MaxSkew: time.Hour, IdleTimeout: 30 * time.Second,
		Type: "inner", Cardinality: "one-to-one", Probe: "aligned", Collect: Collect{Mode: "eager"},
		Unmatched: "drop", Validation: "strict",
		State:    State{Dir: "./data", Buckets: 16, Filter: "fuse16", Memory: 256 << 20, Sync: "interval"},
		Output:   Output{Topic: "joined", Key: "join-key"},
		Delivery: "at-least-once",
		Kafka: Kafka{Brokers: []string{"localhost:9092"}, Group: "joinbench",
			Isolation: "read_committed", Changelog: "auto", TLS: TLS{Enabled: "auto"}, SASL: SASL{Mechanism: "none"}},
	}
}

// Spread is max_spread, with "auto" worked out: the greater of 10 min and 2 × (before + grace). A partition
// that is further ahead of the other side waits.
func (j *Join) Spread() time.Duration {
	if j.MaxSpread != 0 {
		return j.MaxSpread
	}
	return max(minSpread, 2*(j.Window.Before+j.Grace))
}

// Width is state.width, with "auto" worked out: the least whole milliseconds for which the ring cannot be
// overrun, (buckets − 1) × width ≥ max(before, after) + grace + spread (rule 13). 0 if there are fewer than
// two buckets.
func (j *Join) Width() time.Duration {
	if j.State.Width != 0 {
		return j.State.Width
	}
	return j.leastWidth()
}

func (j *Join) leastWidth() time.Duration {
	gaps := time.Duration(j.State.Buckets-1) * time.Millisecond
	if gaps <= 0 {
		return 0
	}
	return (j.mustCover() + gaps - 1) / gaps * time.Millisecond
}

// mustCover is the span of event time that the ring must hold.
func (j *Join) mustCover() time.Duration {
	return max(j.Window.Before, j.Window.After) + j.Grace + j.Spread()
}

// TaskCount is state.tasks, with "auto" worked out as one for each of the given cores.
func (j *Join) TaskCount(cores int) int {
	if j.State.Tasks != 0 {
		return j.State.Tasks
	}
	return max(1, cores)
}
