package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/config"
	"joinbench/core"
	"joinbench/internal/failpoint"
	"joinbench/kafka"
	"joinbench/projection"
)

// plainScene is a join whose records a test writes itself: keyed by the record key, timed by the record time, of so many partitions.
func plainScene(t *testing.T, yaml string, partsA, partsB int) *serveScene {
	t.Helper()
	conf, err := config.Parse([]byte(`a: {topic: topic-a, key: "@key", keep: [$.a]}
b: {topic: topic-b, key: "@key", keep: [$.b]}
window: {within: 1m}
state: {buckets: 4, tasks: 1, memory: 4MiB, sync: none}
`+yaml), "join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &serveScene{t: t, dir: t.TempDir(), status: &Status{}, log: testLog(t), conf: conf, parts: [2]int{partsA, partsB}}
	s.broker()
	return s
}

// plainRecord has the number i as its key, and its value says so.
func plainRecord(side string, i, parts int) projection.Record {
	return projection.Record{Partition: int32(i % parts), Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, `{"%s":%d}`, side, i),
		Timestamp: 1_700_000_000_000 + int64(i)}
}

func plainRecords(side string, from, to, parts int) (all []projection.Record) {
	for i := from; i < to; i++ {
		all = append(all, plainRecord(side, i, parts))
	}
	return all
}

// start runs Serve beside the test; stop ends it and gives its error.
func (s *serveScene) start(sc ServeConfig) (stop func() error) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Serve(ctx, sc)
		done <- err
	}()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// until waits until the status says what is asked for.
func (s *serveScene) until(what string, ok func(ServeSnapshot) bool) ServeSnapshot {
	s.t.Helper()
	deadline := time.After(20 * time.Second) // before an idle side lets time go on
	for {
		snap := s.status.Snapshot()
		if ok(snap) {
			return snap
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("%s: it did not come; the status is %+v", what, snap)
		}
	}
}

// TestServeAbortRewinds (B22): a transaction is aborted in the middle: what is polled next is what was committed last, the pairs come
// once, and as many records wait as without the abort.
func TestServeAbortRewinds(t *testing.T) {
	defer failpoint.Set(nil)
	pending := map[bool]int64{}
	for _, abort := range []bool{false, true} {
		s := plainScene(t, "delivery: exactly-once\n", 3, 3)
		s.produce("topic-a", plainRecords("a", 0, 150, 3)) // the last 50 have no partner
		s.produce("topic-b", plainRecords("b", 0, 100, 3))
		sc := s.serve()
		sc.Drain, sc.BatchRecords = false, 40
		hits := 0
		failpoint.Set(func(name string) error {
			if name != failpoint.KafkaEndBefore {
				return nil
			}
			if hits++; abort && hits == 2 {
				return errInjected
			}
			return nil
		})
		stop := s.start(sc)
		// B ask when A have passed them by the window: those come now.
		later := plainRecords("a", 1_000, 1_003, 3)
		laterB := plainRecords("b", 2_000, 2_003, 3)
		for i := range later {
			later[i].Timestamp += 200_000
			laterB[i].Timestamp += 100_000
		}
		s.produce("topic-a", later)
		s.produce("topic-b", laterB)
		snap := s.until("100 pairs", func(n ServeSnapshot) bool { return n.Counters.Matches >= 100 && n.Counters.A.Read == 153 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := s.status.Snapshot().Aborted; (got > 0) != abort {
			t.Errorf("%d batches aborted", got)
		}
		pending[abort] = snap.Counters.A.Pending
		lines := s.output()
		slices.Sort(lines)
		if n := len(lines); n != 100 || len(slices.Compact(lines)) != 100 {
			t.Errorf("abort %v: %d results, want each of 100 once", abort, n)
		}
		// The positions are those that the group committed.
		m, err := kafka.Join(t.Context(), s.opts, kafka.MemberOptions{Group: "g", Topics: []string{"topic-a", "topic-b"}, SessionTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.Committed(t.Context())
		m.Close()
		if err != nil {
			t.Fatal(err)
		}
		for side, topic := range []string{"topic-a", "topic-b"} {
			for p, place := range s.status.Snapshot().Places[side] {
				if c := all[topic][int32(p)]; c.Offset != place {
					t.Errorf("abort %v: %s/%d: the state reads on at %d, and %d is committed", abort, topic, p, place, c.Offset)
				}
			}
		}
	}
	if pending[true] != pending[false] {
		t.Errorf("%d A wait after an abort, %d without", pending[true], pending[false])
	}
}

// TestServeRefuses: what cannot go well is refused at the start, with words that say what to do (B32 among them).
func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		yaml   string
		parts  [2]int
		before func(s *serveScene)
		change func(sc *ServeConfig)
		want   []string
	}{
		{name: "B32: partition counts", parts: [2]int{4, 6}, want: []string{"topic-a", "topic-b", "4", "6", "@key"}},
		{name: "no input", before: func(s *serveScene) { s.conf.A.Topic = "nowhere" }, want: []string{"topic nowhere", "a.topic"}},
		{name: "no output", before: func(s *serveScene) { s.conf.Output.Topic = "nowhere" },
			want: []string{"topic nowhere", "--create-topics", "kafka-topics.sh --bootstrap-server", "--partitions 2"}},
		{name: "changelog with retention", before: func(s *serveScene) { s.create("g-changelog", 1, map[string]string{"retention.ms": "1000"}) },
			want: []string{"g-changelog", "retention.ms=1000", "--add-config retention.ms=-1"}},
		{name: "changelog that is compacted", before: func(s *serveScene) {
			s.create("g-changelog", 1, map[string]string{"retention.ms": "-1", "cleanup.policy": "compact"})
		}, want: []string{"cleanup.policy=compact"}},
		{name: "changelog with partitions", before: func(s *serveScene) { s.create("g-changelog", 2, changelogSettings) }, want: []string{"2 partitions", "must have 1"}},
		{name: "offsets without a state", yaml: "delivery: exactly-once\n", before: func(s *serveScene) { s.commit("topic-a", 5) },
			want: []string{"group g has committed offsets", "another group"}},
		{name: "offsets of another time", yaml: "delivery: exactly-once\n", before: func(s *serveScene) { s.once(); s.commit("topic-a", 3) },
			want: []string{"topic topic-a, partition 0", "has committed 3", "not of one transaction"}},
		{name: "another configuration", before: func(s *serveScene) { s.once(); s.conf.Grace = time.Second }, want: []string{"another configuration"}},
		{name: "other tasks", before: func(s *serveScene) { s.once(); s.conf.State.Tasks = 3 }, want: []string{"has 1 tasks", "state.tasks says 3"}},
		{name: "other tasks than the changelog", before: func(s *serveScene) { s.once(); s.forget(); s.conf.State.Tasks = 3 },
			want: []string{"written with 1 tasks", "state.tasks says 3"}},
		{name: "a topic that was made anew", before: func(s *serveScene) { s.once(); s.remake("topic-a", 2) }, want: []string{"the state was made of topics"}},
		{name: "a changelog that was made anew", before: func(s *serveScene) { s.once(); s.remake("g-changelog", 0) }, want: []string{"the state's changelog was"}},
		{name: "drained", before: func(s *serveScene) { s.drain() }, want: []string{"was drained"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := c.parts
			if parts == [2]int{} {
				parts = [2]int{2, 2}
			}
			s := plainScene(t, c.yaml, parts[0], parts[1])
			s.produce("topic-a", plainRecords("a", 0, 10, parts[0]))
			s.produce("topic-b", plainRecords("b", 0, 10, parts[1]))
			if c.before != nil {
				c.before(s)
			}
			sc := s.serve()
			sc.Drain = false
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := Serve(ctx, sc)
			if err == nil {
				t.Fatalf("it ran for %s", time.Since(began))
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func (s *serveScene) create(topic string, parts int, settings map[string]string) {
	s.t.Helper()
	if err := kafka.CreateTopic(s.t.Context(), s.opts, topic, parts, settings); err != nil {
		s.t.Fatal(err)
	}
}

// once runs a life up to the first ten A, without a drain.
func (s *serveScene) once() {
	s.t.Helper()
	sc := s.serve()
	sc.Drain = false
	stop := s.start(sc)
	s.until("10 A", func(n ServeSnapshot) bool { return n.Counters.A.Read == 10 })
	if err := stop(); err != nil {
		s.t.Fatal(err)
	}
	s.status = &Status{}
}

func (s *serveScene) drain() {
	s.t.Helper()
	if _, err := Serve(s.t.Context(), s.serve()); err != nil {
		s.t.Fatal(err)
	}
}

// forget removes the state.
func (s *serveScene) forget() {
	s.t.Helper()
	if err := os.RemoveAll(s.dir + "/state"); err != nil {
		s.t.Fatal(err)
	}
}

// commit sets the group's offset for partition 0 of a topic by hand.
func (s *serveScene) commit(topic string, offset int64) {
	s.t.Helper()
	m, err := kafka.Join(s.t.Context(), s.opts, kafka.MemberOptions{Group: "g", Topics: []string{"topic-a", "topic-b"}, SessionTimeout: time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	defer m.Close()
	if err := m.CommitOffsets(s.t.Context(), map[string]map[int32]kafka.Committed{topic: {0: {Offset: offset}}}); err != nil {
		s.t.Fatal(err)
	}
}

// remake deletes a topic, and makes it anew if it is to have partitions.
func (s *serveScene) remake(topic string, parts int) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.opts.Brokers...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopic(s.t.Context(), topic); err != nil {
		s.t.Fatal(err)
	}
	if parts > 0 {
		s.create(topic, parts, nil)
	}
}

// TestServeSecondProcess (B37): a second process over the same directory is refused at once, and told who has it; the first goes on.
func TestServeSecondProcess(t *testing.T) {
	s := plainScene(t, "", 2, 2)
	sc := s.serve()
	sc.Drain = false
	stop := s.start(sc)
	s.until("it runs", func(n ServeSnapshot) bool { return n.State == Running })
	second := sc
	second.Status = &Status{}
	began := time.Now()
	_, err := Serve(t.Context(), second)
	if err == nil || !strings.Contains(err.Error(), sc.StateDir) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("the second process: %v; want the directory and who has it", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	s.produce("topic-a", plainRecords("a", 0, 4, 2))
	s.until("the first goes on", func(n ServeSnapshot) bool { return n.Counters.A.Read == 4 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestServeSideTopics: what cannot be joined goes to its topic with its key and value, and says where it came from and why. A
// result that no broker takes goes there without its body.
func TestServeSideTopics(t *testing.T) {
	s := plainScene(t, "delivery: exactly-once\nunmatched: topic\ntopics: {unmatched: rest}\n", 1, 1)
	s.create("rest", 1, nil)
	s.conf.Topics.Unmatched = "rest"
	s.remake("out", 0)
	s.create("out", 1, map[string]string{"max.message.bytes": "3000"})
	a := plainRecords("a", 0, 3, 1)
	a[1].Value = fmt.Appendf(nil, `{"a":"%s"}`, bytes.Repeat([]byte("x"), 5_000))
	a = append(a, projection.Record{Key: []byte("bad"), Value: []byte(`{"a":`), Timestamp: a[2].Timestamp})
	late := plainRecord("a", 9, 1)
	late.Timestamp -= 3_600_000
	s.produce("topic-a", append(a, late))
	s.produce("topic-b", plainRecords("b", 0, 2, 1))
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	if counts.Oversize != 1 || counts.Outputs != 1 || counts.Matches != 2 || counts.UnmatchedA != 1 {
		t.Errorf("oversize %d, outputs %d, matches %d, unmatched %d", counts.Oversize, counts.Outputs, counts.Matches, counts.UnmatchedA)
	}
	describe := func(topic string) (all []string) {
		for _, r := range s.topic(topic) {
			text := fmt.Sprintf("%s=%s", r.Key, r.Value)
			for _, h := range r.Headers {
				text += fmt.Sprintf(" %s=%s", h.Key, h.Value)
			}
			all = append(all, text)
		}
		slices.Sort(all)
		return all
	}
	for topic, want := range map[string][]string{
		"out":  {`k0={"key":"k0","ts":1700000000000,"a":{"a":0},"b":{"b":0}} a=topic-a/0/0 b=topic-b/0/0`},
		"late": {`k9={"a":9} source=topic-a/0/4 reason=late`},
		"dead": {`bad={"a": source=topic-a/0/3 reason=malformed`, `k1= a=topic-a/0/1 b=topic-b/0/1 reason=oversize bytes=5056`},
		"rest": {`k2={"a":2} source=topic-a/0/2 reason=unmatched`},
	} {
		if got := describe(topic); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", topic, got, want)
		}
	}
}

// TestServeTrims: time goes on, buckets go, and the changelog's beginning with them. What is left makes the state anew.
func TestServeTrims(t *testing.T) {
	s := plainScene(t, "delivery: exactly-once\n", 1, 1)
	sc := s.serve()
	sc.Drain = false
	stop := s.start(sc)
	s.spread(0, 300)
	s.until("all A", func(n ServeSnapshot) bool { return n.Counters.A.Read == 300 && n.Counters.Matches > 180 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	log := kafka.NewChangelog(s.opts, "g-changelog", 0)
	start, end, err := log.Bounds(t.Context(), nil)
	if err != nil || start == 0 || start >= end {
		t.Errorf("the changelog has offsets %d to %d, %v: want its beginning cut off", start, end, err)
	}
	s.forget()
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	if counts.Matches != 200 || counts.A.Read != 300 || len(s.output()) != 200 {
		t.Errorf("%d matches of %d A, %d results; want 200 of 300", counts.Matches, counts.A.Read, len(s.output()))
	}
}

// spread writes A with ten seconds between them, and for two of three a B.
func (s *serveScene) spread(from, to int) {
	at := func(side string, i int) []projection.Record {
		r := plainRecord(side, i, 1)
		r.Timestamp += int64(i) * 10_000
		return []projection.Record{r}
	}
	for i := from; i < to; i++ {
		s.produce("topic-a", at("a", i))
		if i%3 > 0 {
			s.produce("topic-b", at("b", i))
		}
	}
}

// TestServeStateIsTooOld: a directory that a process left behind, while another one went on with a directory of its own and cut the
// changelog, is made anew.
func TestServeStateIsTooOld(t *testing.T) {
	s := plainScene(t, "delivery: exactly-once\n", 1, 1)
	for i, life := range []struct{ from, to int }{{0, 60}, {60, 300}} {
		sc := s.serve()
		sc.Drain = false
		stop := s.start(sc)
		s.spread(life.from, life.to)
		s.until("all A", func(n ServeSnapshot) bool {
			return n.Counters.A.Read == int64(life.to) && n.Counters.Matches > int64(life.to/2)
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.status = &Status{}
		if i == 0 {
			if err := os.Rename(s.dir+"/state", s.dir+"/old"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.forget()
	if err := os.Rename(s.dir+"/old", s.dir+"/state"); err != nil {
		t.Fatal(err)
	}
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	if counts.Matches != 200 || counts.A.Read != 300 || len(s.output()) != 200 {
		t.Errorf("%d matches of %d A, %d results; want 200 of 300", counts.Matches, counts.A.Read, len(s.output()))
	}
}

// TestSinkBook: the sink's part of a commit record comes back as it was; needed is where the oldest bucket began.
func TestSinkBook(t *testing.T) {
	book := sinkBook{before: 900, marks: map[core.LiveEpoch]int64{{Space: 0, Epoch: 3}: 500, {Space: 'w', Epoch: 4}: 700}}
	if got := book.needed(); got != 500 {
		t.Errorf("needed from %d on, want 500", got)
	}
	back, err := parseBook(book.append(nil))
	if err != nil || back.before != 900 || back.needed() != 500 || len(back.marks) != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	data := book.append(nil)
	for n := 1; n < len(data); n++ {
		if _, err := parseBook(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for a book", n, len(data))
		}
	}
}

// TestServeMemberIsLost: the group takes the partitions away, here because an operator removes the member; it joins again, goes on
// from what is committed, and nothing comes twice.
func TestServeMemberIsLost(t *testing.T) {
	s := plainScene(t, "delivery: exactly-once\n", 2, 2)
	sc := s.serve()
	sc.Drain = false
	stop := s.start(sc)
	s.produce("topic-a", plainRecords("a", 0, 20, 2))
	s.until("20 A", func(n ServeSnapshot) bool { return n.Counters.A.Read == 20 })
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.opts.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	groups, err := adm.DescribeGroups(t.Context(), "g")
	if err != nil || len(groups["g"].Members) != 1 {
		t.Fatalf("%+v, %v", groups, err)
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = "g"
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = groups["g"].Members[0].MemberID
	req.Members, req.MemberID = append(req.Members, m), m.MemberID
	if _, err := req.RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	s.until("it starts over", func(n ServeSnapshot) bool { return n.Aborted > 0 && n.State == Running })
	s.produce("topic-b", plainRecords("b", 0, 20, 2))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(t.Context(), s.serve()); err != nil {
		t.Fatal(err)
	}
	lines := s.output()
	slices.Sort(lines)
	if len(lines) != 20 || len(slices.Compact(lines)) != 20 {
		t.Errorf("%d results, want each of 20 once", len(lines))
	}
}

// TestServeIsFenced: another producer takes the transactional id away once; the unit takes it back, since the group says that it is the
// one that reads, and nothing comes twice. If that goes on for ever it gives up, and says so.
func TestServeIsFenced(t *testing.T) {
	for _, always := range []bool{false, true} {
		s := plainScene(t, "delivery: exactly-once\n", 2, 2)
		s.produce("topic-a", plainRecords("a", 0, 40, 2))
		s.produce("topic-b", plainRecords("b", 0, 40, 2))
		hits := 0
		failpoint.Set(func(name string) error {
			if name != failpoint.KafkaOffsets {
				return nil
			}
			if hits++; hits == 2 || always {
				p, err := kafka.NewProducer(t.Context(), s.opts, kafka.ProducerOptions{TransactionalID: "g", TransactionTimeout: time.Second})
				if err != nil {
					return err
				}
				p.Close(t.Context())
			}
			return nil
		})
		_, err := Serve(t.Context(), s.serve())
		failpoint.Set(nil)
		if always {
			if err == nil || !strings.Contains(err.Error(), "takes the transactional id away") {
				t.Errorf("it ended with %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := s.status.Snapshot().Aborted; n != 1 {
			t.Errorf("%d batches undone, want the one that was fenced", n)
		}
		lines := s.output()
		slices.Sort(lines)
		if len(lines) != 40 || len(slices.Compact(lines)) != 40 {
			t.Errorf("%d results, want each of 40 once", len(lines))
		}
	}
}

// TestServeBrokerIsGone: for a while the broker cuts every connection. Serve goes on trying, and nothing is lost or comes twice.
func TestServeBrokerIsGone(t *testing.T) {
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		s := plainScene(t, "delivery: "+delivery+"\n", 2, 2)
		s.produce("topic-a", plainRecords("a", 0, 200, 2))
		s.produce("topic-b", plainRecords("b", 0, 200, 2))
		var gone atomic.Bool
		s.cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
			s.cluster.KeepControl()
			if gone.Load() {
				return nil, errInjected, true
			}
			return nil, nil, false
		})
		hits := 0
		failpoint.Set(func(name string) error {
			if name == failpoint.KafkaChangelogBefore {
				if hits++; hits == 4 {
					gone.Store(true)
					time.AfterFunc(3*time.Second, func() { gone.Store(false) }) // what the test is about, not a wait for something
				}
			}
			return nil
		})
		_, err := Serve(t.Context(), s.serve())
		failpoint.Set(nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := s.output()
		if hits < 4 {
			t.Errorf("%s: %d batches", delivery, hits)
		}
		slices.Sort(lines)
		if distinct := len(slices.Compact(slices.Clone(lines))); distinct != 200 || delivery == "exactly-once" && len(lines) != 200 {
			t.Errorf("%s: %d results, %d of them different, want 200", delivery, len(lines), distinct)
		}
	}
}
