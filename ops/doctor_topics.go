package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"joinbench/kafka"
	"joinbench/results"
)

// reach is how far the join looks back: a record that is older has met all it could (rules 10 and 13).
func (x *examining) reach() time.Duration {
	return x.j.Window.Before + x.j.Window.After + x.j.Grace + x.j.Spread()
}

// setting is a number among a topic's settings; false if the broker did not say.
func setting(t *kafka.TopicFacts, name string) (int64, bool) {
	n, err := strconv.ParseInt(t.Settings[name], 10, 64)
	return n, err == nil
}

// retention holds what a topic keeps against what the join needs to read.
func (x *examining) retention(in *input) {
	name, topic := "retention "+in.conf.Topic, in.conf.Topic
	need := x.reach()
	looks := fmt.Sprintf("the join looks back %s (before + after + grace + max_spread)", span(need))
	t := in.topic
	if !t.Described {
		x.warn(name, "its settings may not be read by this user", "see yourself that retention.ms is more than "+span(need)+", or give the right (DESCRIBE_CONFIGS)")
		return
	}
	if policy := t.Settings["cleanup.policy"]; policy != "" && !strings.Contains(policy, "delete") {
		x.ok(name, "nothing is deleted by age (cleanup.policy "+policy+")")
		return
	}
	if x.retentionBytes(in, need, looks) {
		return
	}
	ms, known := setting(t, "retention.ms")
	switch keeps := time.Duration(ms) * time.Millisecond; {
	case !known:
		x.ok(name, "retention.ms is not told by these brokers; "+looks)
	case ms < 0:
		x.ok(name, "records are kept for ever")
	case keeps < need:
		x.short(name, fmt.Sprintf("retention.ms is %s, and %s", span(keeps), looks),
			fmt.Sprintf("raise it to %s and what an outage may last: kafka-configs --alter --topic %s --add-config retention.ms=%d", span(need), topic, 2*need.Milliseconds()))
	case keeps-need < time.Hour:
		x.warn(name, fmt.Sprintf("retention.ms is %s, and %s", span(keeps), looks), fmt.Sprintf("an outage of more than %s loses records: raise retention.ms", span(keeps)))
	default:
		x.ok(name, fmt.Sprintf("retention.ms is %s, and %s: %s more for outages", span(keeps), looks, span(keeps-need)))
	}
}

// short: a topic that keeps less than the join looks back.
func (x *examining) short(name, value, raise string) {
	if x.j.KeepsChangelog() {
		x.warn(name, value, "a state that is lost comes back from the changelog, but not from the topics, and a backlog of that age is gone: "+raise)
		return
	}
	x.bad(name, value, "without a changelog a state that is lost is built from the topics, and they do not reach back that far: "+raise)
}

// retentionBytes says whether the limit by size was what was to be told.
func (x *examining) retentionBytes(in *input, need time.Duration, looks string) bool {
	limit, known := setting(in.topic, "retention.bytes")
	if !known || limit < 0 || in.rate == 0 {
		return false
	}
	each := float64(in.sample.Bytes) / float64(len(in.sample.Records))
	lasts := time.Duration(float64(limit) / (in.rate * each / float64(in.topic.Partitions)) * float64(time.Second))
	if lasts >= need {
		return false
	}
	x.short("retention "+in.conf.Topic, fmt.Sprintf("retention.bytes is %s a partition, at the rate of now about %s (more if records are compressed), and %s",
		results.Bytes(limit), span(lasts), looks), "raise retention.bytes, or set it to -1")
	return true
}

// topic looks for a topic that is written, once.
func (x *examining) topic(ctx context.Context, name string) (*kafka.TopicFacts, error) {
	if t := x.topics[name]; t != nil {
		return t, nil
	}
	t, err := x.in.Topic(ctx, name, true)
	if err == nil {
		x.topics[name] = t
	}
	return t, err
}

// written looks at a topic that is written to, and says whether it is there and all is well so far.
func (x *examining) written(ctx context.Context, check, topic, key string) (*kafka.TopicFacts, bool) {
	t, err := x.topic(ctx, topic)
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		x.bad(check, topic+" is not there, or not to be seen by this user", "make it (kafka-topics --create, or serve --create-topics), or mend "+key)
	case err != nil:
		x.bad(check, topic+": "+err.Error(), askAdvice(err))
	case t.Leaderless > 0:
		x.bad(check, fmt.Sprintf("%s: %d of %s have no leader", topic, t.Leaderless, count(t.Partitions, "partition")), "brokers are missing: nothing can be written there now")
	case !allows(t.Allowed, "WRITE"):
		x.bad(check, topic+": we may "+strings.Join(t.Allowed, ", "), "writing is a right that is missing: kafka-acls --add --producer --topic "+topic)
	default:
		return t, true
	}
	return t, false
}

// output looks at where results go.
func (x *examining) output(ctx context.Context) {
	const name = "output"
	t, ok := x.written(ctx, name, x.j.Output.Topic, "output.topic")
	if !ok {
		return
	}
	value := fmt.Sprintf("%s: %s, %s, max.message.bytes %s", t.Name, count(t.Partitions, "partition"), count(t.Replicas, "replica"), results.Bytes(int64(t.MaxBytes)))
	if status, said, advice := x.durable(t); advice != "" {
		x.add(name, status, value+said, advice)
	} else {
		x.ok(name, value+said)
	}
	x.outputSize(t)
	x.outputTime(t)
}

// durable says whether what a broker acknowledges outlives that broker.
func (x *examining) durable(t *kafka.TopicFacts) (status, said, advice string) {
	least, known := setting(t, "min.insync.replicas")
	if known {
		said = fmt.Sprintf(", min.insync.replicas %d", least)
	}
	switch {
	case known && int(least) > t.InSync:
		return results.CheckBad, fmt.Sprintf("%s, in sync %d", said, t.InSync), "the broker takes nothing while fewer replicas are in sync than min.insync.replicas: bring brokers back, or lower it"
	case t.Replicas == 1:
		return results.CheckWarn, said, "a broker whose disk is lost takes it along, transactions or not: a replication factor of 3 in production"
	case known && least == 1:
		return results.CheckWarn, said, "one replica may acknowledge alone, and what it has is lost with it: min.insync.replicas=2"
	case known && int(least) == t.Replicas:
		return results.CheckWarn, said, "one broker that is away stops the join: more replicas than min.insync.replicas"
	}
	return "", said, ""
}

// outputSize: a result holds what both sides keep, and with collect many B.
func (x *examining) outputSize(t *kafka.TopicFacts) {
	const name = "output size"
	advice := "a result that is too large goes to topics.dead and is counted as oversize: name what is needed with keep, or raise max.message.bytes of " + t.Name
	var seen int64 // the largest of both together
	for i := range x.inputs {
		in := &x.inputs[i]
		if in.topic == nil || len(in.conf.Keep) > 0 {
			continue
		}
		if in.topic.MaxBytes > t.MaxBytes {
			x.warn(name, fmt.Sprintf("a result holds the whole value of a record of %s, which may be %s, and %s takes %s", in.topic.Name,
				results.Bytes(int64(in.topic.MaxBytes)), t.Name, results.Bytes(int64(t.MaxBytes))), advice)
			return
		}
		if in.sample != nil {
			seen += int64(in.sample.Largest)
		}
	}
	if 2*seen > int64(t.MaxBytes) {
		x.warn(name, fmt.Sprintf("the largest of the sampled records are %s together, and %s takes %s", results.Bytes(seen), t.Name, results.Bytes(int64(t.MaxBytes))), advice)
	}
}

// outputTime: results have the event time of what they join, so brokers see times of the past.
func (x *examining) outputTime(t *kafka.TopicFacts) {
	const name = "output time"
	need := x.reach()
	before, known := setting(t, "message.timestamp.before.max.ms")
	if d := time.Duration(before) * time.Millisecond; known && before >= 0 && before < 1<<53 && d < need {
		x.bad(name, fmt.Sprintf("%s takes no record older than %s, and results are up to %s old", t.Name, span(d), span(need)),
			fmt.Sprintf("raise message.timestamp.before.max.ms of %s, or nothing of a backlog can be written", t.Name))
	}
	keeps, known := setting(t, "retention.ms")
	policy := t.Settings["cleanup.policy"]
	if d := time.Duration(keeps) * time.Millisecond; known && keeps >= 0 && (policy == "" || strings.Contains(policy, "delete")) && d < need {
		x.warn(name, fmt.Sprintf("%s keeps records for %s by their time, which is that of the events: up to %s ago", t.Name, span(d), span(need)),
			"results of a backlog may be deleted before anybody read them: raise its retention.ms")
	}
}

// sideTopics looks at late, dead and unmatched.
func (x *examining) sideTopics(ctx context.Context) {
	for _, s := range []struct{ key, topic string }{{"late", x.j.Topics.Late}, {"dead", x.j.Topics.Dead}, {"unmatched", x.j.Topics.Unmatched}} {
		if s.topic == "" {
			continue
		}
		if t, ok := x.written(ctx, "topics."+s.key, s.topic, "topics."+s.key); ok {
			x.ok("topics."+s.key, fmt.Sprintf("%s: %s", s.topic, count(t.Partitions, "partition")))
		}
	}
}

// changelog looks at the topic that a lost state comes back from.
func (x *examining) changelog(ctx context.Context) {
	const check = "changelog"
	if !x.j.KeepsChangelog() {
		x.warn(check, "off", "a state that is lost is built anew by reading both topics from their beginning, and results come twice: kafka.changelog: auto")
		return
	}
	name := x.j.ChangelogTopic()
	t, err := x.topic(ctx, name)
	if errors.Is(err, kafka.ErrNoTopic) {
		x.ok(check, name+" is not there yet; serve makes it, if it may")
		return
	}
	if t, ok := x.written(ctx, check, name, "kafka.group"); ok {
		x.changelogKeeps(t)
	} else if t == nil {
		return
	}
	if !allows(t.Allowed, "DELETE") {
		x.warn("changelog trim", name+": we may "+strings.Join(t.Allowed, ", "), "without the right to DELETE records the changelog is never cut and grows without end")
	}
}

func (x *examining) changelogKeeps(t *kafka.TopicFacts) {
	const check = "changelog"
	if t.Partitions != 1 {
		x.bad(check, fmt.Sprintf("%s has %s", t.Name, count(t.Partitions, "partition")), "its batches have one order, so it has 1: delete it and let serve make it, or use another kafka.group")
		return
	}
	value := fmt.Sprintf("%s: %s, %s", t.Name, count(t.Partitions, "partition"), count(t.Replicas, "replica"))
	for _, limit := range []string{"retention.ms", "retention.bytes"} {
		if n, known := setting(t, limit); known && n >= 0 {
			x.bad(check, fmt.Sprintf("%s, %s %d", value, limit, n),
				"the broker deletes what a lost state would need; the join cuts it by itself: kafka-configs --alter --topic "+t.Name+" --add-config retention.ms=-1,retention.bytes=-1")
			return
		}
	}
	if strings.Contains(t.Settings["cleanup.policy"], "compact") {
		x.bad(check, value+", cleanup.policy "+t.Settings["cleanup.policy"], "compaction takes parts of batches away: cleanup.policy=delete, with retention.ms=-1")
		return
	}
	if status, said, advice := x.durable(t); advice != "" {
		x.add(check, status, value+said, advice)
	} else {
		x.ok(check, value+said)
	}
}
