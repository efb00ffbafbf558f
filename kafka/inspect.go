package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Inspector asks a cluster what somebody who is about to join two of its topics wants to know. It writes nothing, joins no group and takes over no
// transactional id, so it may be used beside a join that runs. It belongs to one goroutine.
type Inspector struct {
	o   Options
	cl  *kgo.Client
	adm *kadm.Client
}

// NewInspector connects and asks the brokers something, so that what is wrong with the address or with who we are is told here.
// The caller closes it. ctx bounds the attempt.
func NewInspector(ctx context.Context, o Options) (*Inspector, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	if err := reach(ctx, cl, o); err != nil {
		cl.Close()
		return nil, explain(err)
	}
	return &Inspector{o: o, cl: cl, adm: kadm.NewClient(cl)}, nil
}

// Close ends the connections.
func (i *Inspector) Close() { i.cl.Close() }

// ClusterFacts are what the brokers say of themselves.
type ClusterFacts struct {
	Brokers  []string // host:port
	Versions []string // guessed from what they can do; one if all are alike
	// TransactionMax is transaction.max.timeout.ms; 0: not told (a right that is missing, or a broker that does not say).
	TransactionMax time.Duration
	// Transactions: they know them (0.11).
	Transactions bool
}

// Cluster asks about the brokers.
func (i *Inspector) Cluster(ctx context.Context) (*ClusterFacts, error) {
	meta, err := i.adm.BrokerMetadata(ctx)
	if err != nil {
		return nil, explain(err)
	}
	c := &ClusterFacts{Transactions: true}
	var ids []int32
	for _, b := range meta.Brokers {
		ids = append(ids, b.NodeID)
		c.Brokers = append(c.Brokers, fmt.Sprintf("%s:%d", b.Host, b.Port))
	}
	versions, err := i.adm.ApiVersions(ctx)
	if err != nil {
		return nil, explain(err)
	}
	for _, v := range versions {
		if v.Err != nil {
			return nil, fmt.Errorf("broker %d: %w", v.NodeID, explain(v.Err))
		}
		if _, _, ok := v.KeyVersions(kmsg.InitProducerID.Int16()); !ok {
			c.Transactions = false
		}
	}
	c.Versions = releases(versions)
	configs, err := i.adm.DescribeBrokerConfigs(ctx, ids...)
	if err != nil {
		return c, nil // a right that joining does not need
	}
	for _, r := range configs {
		for _, s := range r.Configs {
			if s.Key != "transaction.max.timeout.ms" {
				continue
			}
			if n, err := strconv.ParseInt(s.MaybeValue(), 10, 64); err == nil && n > 0 {
				d := time.Duration(n) * time.Millisecond
				if c.TransactionMax == 0 || d < c.TransactionMax {
					c.TransactionMax = d
				}
			}
		}
	}
	return c, nil
}

// TopicFacts are what the cluster says of a topic.
type TopicFacts struct {
	Topic
	Described  bool     // Settings are there: reading them is a right of its own
	Replicas   int      // of the partition that has the fewest
	InSync     int      // the least of any partition
	Leaderless int      // partitions that nobody leads now
	Allowed    []string // what we may do with it (READ, WRITE, …); nil: the broker does not say
	Spans      []Span   // by partition, for the isolation that was asked about; nil: not told
	// Lists is why Spans is nil.
	Lists error
}

// Records is how many offsets the topic has.
func (t *TopicFacts) Records() (n int64) {
	for _, s := range t.Spans {
		n += s.End - s.Start
	}
	return n
}

// ErrNoTopic is wrapped where a topic is not there, or where we are not even allowed to know: brokers do not tell the two apart to
// somebody without rights.
var ErrNoTopic = errors.New("no such topic")

// Topic asks about a topic.
func (i *Inspector) Topic(ctx context.Context, name string, uncommitted bool) (*TopicFacts, error) {
	meta, err := i.adm.Metadata(kadm.WithAuthorizedOps(ctx), name)
	if err != nil {
		return nil, explain(err)
	}
	d, ok := meta.Topics[name]
	switch {
	case !ok, errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return nil, ErrNoTopic
	case d.Err != nil:
		return nil, explain(d.Err)
	}
	t := &TopicFacts{Topic: newTopic(d)}
	t.count(d.Partitions)
	for _, op := range d.AuthorizedOperations {
		t.Allowed = append(t.Allowed, op.String())
	}
	i.settings(ctx, t)
	t.Spans, t.Lists = listSpans(ctx, i.adm, name, t.Partitions, uncommitted)
	return t, nil
}

// count looks at who has the partitions.
func (t *TopicFacts) count(parts kadm.PartitionDetails) {
	t.Replicas, t.InSync = math.MaxInt, math.MaxInt
	for _, p := range parts {
		if p.Leader < 0 {
			t.Leaderless++
		}
		t.Replicas, t.InSync = min(t.Replicas, len(p.Replicas)), min(t.InSync, len(p.ISR))
	}
}

func (i *Inspector) settings(ctx context.Context, t *TopicFacts) {
	configs, err := i.adm.DescribeTopicConfigs(ctx, t.Name)
	if err != nil {
		return
	}
	for _, r := range configs {
		if r.Err != nil {
			return
		}
		t.Described = true
		t.set(r.Configs)
	}
}

// Rate is how many records a second of record time a topic got, over the last minutes before a time (ms). 0: it cannot be told.
func (i *Inspector) Rate(ctx context.Context, t *TopicFacts, newest int64) float64 {
	listed, err := i.adm.ListOffsetsAfterMilli(ctx, newest-rateSpan.Milliseconds(), t.Name)
	if err != nil || listed.Error() != nil {
		return 0
	}
	rate := 0.0
	for p, s := range t.Spans {
		o, ok := listed.Lookup(t.Name, int32(p))
		if !ok || o.Timestamp < 0 {
			continue
		}
		if took := newest - o.Timestamp; took >= time.Second.Milliseconds() && s.End > o.Offset {
			rate += float64(s.End-o.Offset) / (float64(took) / 1000)
		}
	}
	return rate
}

// rateSpan is what a rate is taken over.
const rateSpan = 10 * time.Minute

// GroupFacts are what a consumer group is doing.
type GroupFacts struct {
	State     string                         // Empty, Stable, Dead (it is not there) …
	Members   []string                       // client id and host of each
	Allowed   []string                       // as in TopicFacts
	Committed map[string]map[int32]Committed // by topic, of those that were asked for
}

// Group asks about a group and where it has committed.
func (i *Inspector) Group(ctx context.Context, group string, topics ...string) (*GroupFacts, error) {
	described, err := i.adm.DescribeGroups(ctx, group)
	if err != nil {
		return nil, explain(err)
	}
	g := &GroupFacts{State: "Dead"}
	if d, ok := described[group]; ok && !errors.Is(d.Err, kerr.GroupIDNotFound) {
		if d.Err != nil {
			return nil, explain(d.Err)
		}
		g.State = d.State
		for _, m := range d.Members {
			g.Members = append(g.Members, m.ClientID+" at "+m.ClientHost)
		}
		for _, op := range d.AuthorizedOperations {
			g.Allowed = append(g.Allowed, op.String())
		}
	}
	fetched, err := i.adm.FetchOffsets(ctx, group) // of all topics: asking for one that is not there would be an error
	if errors.Is(err, kerr.GroupIDNotFound) {
		return g, nil
	}
	if err != nil {
		return nil, fmt.Errorf("its offsets: %w", explain(err))
	}
	g.Committed = map[string]map[int32]Committed{}
	for topic, parts := range fetched {
		if !slices.Contains(topics, topic) {
			continue
		}
		g.Committed[topic] = map[int32]Committed{}
		for id, r := range parts {
			if r.Err == nil && r.At >= 0 {
				g.Committed[topic][id] = Committed{Offset: r.At, Metadata: r.Metadata}
			}
		}
	}
	return g, nil
}
