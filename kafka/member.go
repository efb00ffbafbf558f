package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrOtherMember is why a process does not run: another one reads the same topics for the same group.
var ErrOtherMember = errors.New("the group has another member")

// ErrLost is why a member has to stop: what it commits would no longer be taken.
var ErrLost = errors.New("the group took the partitions away")

// MemberOptions say in which group to stand, and for what.
type MemberOptions struct {
	Group    string
	Instance string // a name that outlives restarts (static membership); empty: none
	Topics   []string
	// SessionTimeout is how long the group waits for a member that says nothing, 45 s: after a crash the group holds on to the
	// dead member for so long, unless it has an Instance.
	SessionTimeout time.Duration
	// Patience is how long Join waits for another member to go, which may be what is left of a crash; 0: it does not.
	Patience time.Duration
}

const (
	defaultSession = 45 * time.Second
	describeAgain  = time.Second
	stableAgain    = 50 * time.Millisecond
)

// Metadata is what brokers fence commits by.
type Metadata struct {
	Group, MemberID, Instance string
	Generation                int32
}

// Committed is what a group has committed for a partition.
type Committed struct {
	Offset   int64
	Metadata string
}

// Member stands in a consumer group without reading: all partitions of its topics are its own. Its methods may be called by any
// goroutine.
type Member struct {
	cl     *kgo.Client
	adm    *kadm.Client
	opt    MemberOptions
	log    *slog.Logger
	topics kadm.TopicDetails

	assigned chan map[string][]int32 // the first assignment
	lost     chan struct{}

	mu      sync.Mutex
	joined  bool
	leaving bool
	isLost  bool
	why     error // of the client, if it said
}

// Join enters the group, and is refused with ErrOtherMember if somebody else is in it.
func Join(ctx context.Context, o Options, m MemberOptions) (*Member, error) {
	if m.SessionTimeout <= 0 {
		m.SessionTimeout = defaultSession
	}
	opts, err := o.clientOpts()
	if err != nil {
		return nil, err
	}
	plain, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	defer plain.Close()
	if err := reach(ctx, plain, o); err != nil {
		return nil, err
	}
	k := &Member{opt: m, log: o.log(), assigned: make(chan map[string][]int32, 1), lost: make(chan struct{})}
	adm := kadm.NewClient(plain)
	if k.topics, err = adm.ListTopics(ctx, m.Topics...); err == nil {
		err = k.topics.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: topics %s: %w", strings.Join(m.Topics, ", "), explain(err))
	}
	if err := k.alone(ctx, adm); err != nil {
		return nil, err
	}
	if err := k.join(ctx, opts); err != nil {
		return nil, err
	}
	return k, nil
}

// alone waits, as long as the options say, until nobody else is in the group.
func (m *Member) alone(ctx context.Context, adm *kadm.Client) error {
	until := time.Now().Add(m.opt.Patience)
	for told := false; ; told = true {
		others, err := m.others(ctx, adm)
		if errors.Is(err, kerr.CoordinatorNotAvailable) && time.Now().Before(until) {
			// The first group of a cluster: what keeps groups is only being made.
			m.log.Warn("kafka: the group's coordinator is not there yet; asking again", "group", m.opt.Group)
			if err := pause(ctx, describeAgain); err != nil {
				return err
			}
			continue
		}
		if err != nil || len(others) == 0 {
			return err
		}
		if !time.Now().Before(until) {
			return m.refuse(others)
		}
		if !told {
			m.log.Warn("kafka: the group has another member; waiting for it to go, as what a crash left behind does",
				"group", m.opt.Group, "member", strings.Join(others, ", "), "at_most", m.opt.Patience)
		}
		if err := pause(ctx, min(describeAgain, time.Until(until))); err != nil {
			return err
		}
	}
}

// others are the members of the group that are not this one.
func (m *Member) others(ctx context.Context, adm *kadm.Client) ([]string, error) {
	groups, err := adm.DescribeGroups(ctx, m.opt.Group)
	if err != nil {
		return nil, fmt.Errorf("kafka: group %s: %w", m.opt.Group, explain(err))
	}
	g := groups[m.opt.Group]
	if g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("kafka: group %s: %w", m.opt.Group, explain(g.Err))
	}
	own := ""
	if m.cl != nil {
		own, _ = m.cl.GroupMetadata()
	}
	var others []string
	for _, o := range g.Members {
		static := m.opt.Instance != "" && o.InstanceID != nil && *o.InstanceID == m.opt.Instance
		if !static && (own == "" || o.MemberID != own) {
			others = append(others, fmt.Sprintf("client id %q on host %s", o.ClientID, o.ClientHost))
		}
	}
	return others, nil
}

// refuse says who is in the way, and what can be done.
func (m *Member) refuse(others []string) error {
	who := strings.Join(others, ", ")
	if who == "" {
		who = "one that the group does not name"
	}
	return fmt.Errorf("kafka: %w: group %s, topics %s: %s. One process has to read all partitions of both topics, because equal keys may lie in any of them. "+
		"Stop the other one; or give this join a group of its own (kafka.group); or, to take over from a process that is gone, give both "+
		"the same name (kafka.instance)", ErrOtherMember, m.opt.Group, strings.Join(m.opt.Topics, ", "), who)
}

// join makes the client that stands in the group, and waits for its assignment.
func (m *Member) join(ctx context.Context, opts []kgo.Opt) error {
	opts = append(opts[:len(opts):len(opts)],
		kgo.ConsumerGroup(m.opt.Group),
		kgo.ConsumeTopics(m.opt.Topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), // a member that comes takes nothing away before it is told to
		kgo.SessionTimeout(m.opt.SessionTimeout),
		kgo.HeartbeatInterval(min(3*time.Second, m.opt.SessionTimeout/3)),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(m.onAssigned),
		kgo.OnPartitionsRevoked(m.onTaken),
		kgo.OnPartitionsLost(m.onTaken),
		kgo.WithHooks(m),
	)
	if m.opt.Instance != "" {
		opts = append(opts, kgo.InstanceID(m.opt.Instance))
	}
	var err error
	if m.cl, err = kgo.NewClient(opts...); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	m.adm = kadm.NewClient(m.cl)
	if err = m.await(ctx); err != nil {
		m.Close()
	}
	return err
}

// await waits until all partitions are ours.
func (m *Member) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.opt.SessionTimeout+askTimeout)
	defer cancel()
	select {
	case got := <-m.assigned:
		if m.all(got) {
			return nil
		}
	case <-m.lost:
		return m.Err()
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		return fmt.Errorf("kafka: joining group %s: %w", m.opt.Group, explain(errors.Join(m.why, ctx.Err())))
	}
	others, err := m.others(ctx, m.adm)
	if err != nil {
		return err
	}
	return m.refuse(others)
}

func (m *Member) all(got map[string][]int32) bool {
	for t, d := range m.topics {
		if len(got[t]) != len(d.Partitions) {
			return false
		}
	}
	return true
}

// onAssigned is called before anything of what was assigned is fetched, and sees to it that nothing is.
func (m *Member) onAssigned(_ context.Context, cl *kgo.Client, got map[string][]int32) {
	cl.PauseFetchTopics(m.opt.Topics...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.joined {
		m.joined = true
		m.assigned <- got
	}
}

// onTaken is called when partitions are no longer ours.
func (m *Member) onTaken(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(gone) > 0 && !m.leaving && !m.isLost {
		m.isLost = true
		close(m.lost)
	}
}

// OnGroupManageError implements kgo.HookGroupManageError: it is called after onTaken, or when joining failed.
func (m *Member) OnGroupManageError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.why = err
	fenced := errors.Is(err, kerr.FencedInstanceID) || fatal(err) && !errors.Is(err, kerr.UnknownMemberID) && !errors.Is(err, kerr.IllegalGeneration)
	if fenced && !m.leaving && !m.isLost {
		m.isLost = true
		close(m.lost)
	}
}

// Lost is closed when partitions were taken away: another member came, another process of the same instance did, or the group
// heard nothing from this one for too long. The client may be in the group again by then; what the group committed meanwhile is
// not known, so whoever works on must start from what is committed.
func (m *Member) Lost() <-chan struct{} { return m.lost }

// Err is why partitions were lost, nil while they are not.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.isLost:
		return nil
	case m.why == nil:
		return fmt.Errorf("kafka: group %s: %w", m.opt.Group, ErrLost)
	}
	return fmt.Errorf("kafka: group %s: %w: %w", m.opt.Group, ErrLost, explain(m.why))
}

// Metadata is what a transaction has to say so that its offsets are fenced.
func (m *Member) Metadata() Metadata {
	id, generation := m.cl.GroupMetadata()
	return Metadata{Group: m.opt.Group, MemberID: id, Instance: m.opt.Instance, Generation: generation}
}

// Committed is what the group has committed, of the partitions for which it has. It waits for transactions that are open.
func (m *Member) Committed(ctx context.Context) (map[string]map[int32]Committed, error) {
	for {
		answer, err := m.adm.FetchOffsetsForTopics(kadm.RequireStable(ctx), m.opt.Group, m.opt.Topics...)
		if err == nil {
			err = answer.Error()
		}
		switch {
		case errors.Is(err, kerr.UnstableOffsetCommit):
			if e := pause(ctx, stableAgain); e != nil {
				return nil, fmt.Errorf("kafka: offsets of group %s: %w: %w", m.opt.Group, err, e)
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("kafka: offsets of group %s: %w", m.opt.Group, explain(err))
		}
		out := map[string]map[int32]Committed{}
		answer.Each(func(o kadm.OffsetResponse) {
			if o.At < 0 {
				return
			}
			if out[o.Topic] == nil {
				out[o.Topic] = map[int32]Committed{}
			}
			out[o.Topic][o.Partition] = Committed{o.At, o.Metadata}
		})
		return out, nil
	}
}

// CommitOffsets commits for the group, as a member of it: one that the group no longer knows is refused.
func (m *Member) CommitOffsets(ctx context.Context, offsets map[string]map[int32]Committed) error {
	meta := m.Metadata()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = meta.Group, meta.MemberID, meta.Generation
	if meta.Instance != "" {
		req.InstanceID = &meta.Instance
	}
	for topic, parts := range offsets {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = topic, m.topics[topic].ID
		for p, c := range parts {
			o := kmsg.NewOffsetCommitRequestTopicPartition()
			o.Partition, o.Offset, o.Metadata = p, c.Offset, &c.Metadata
			t.Partitions = append(t.Partitions, o)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, m.cl)
	if err != nil {
		return fmt.Errorf("kafka: committing offsets of group %s: %w", m.opt.Group, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("kafka: committing offsets of group %s: topic %s, partition %d: %w", m.opt.Group, m.name(t), p.Partition, err)
			}
		}
	}
	return nil
}

// name of a topic in an answer, which may have its id alone.
func (m *Member) name(t kmsg.OffsetCommitResponseTopic) string {
	if t.Topic != "" {
		return t.Topic
	}
	for _, d := range m.topics {
		if d.ID == t.TopicID {
			return d.Topic
		}
	}
	return kadm.TopicID(t.TopicID).String()
}

// Close leaves the group. One with an instance stays in it by name, so that the next process of that name takes over without the
// group noticing.
func (m *Member) Close() {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	m.cl.Close()
}
