package pipeline

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"joinbench/config"
	"joinbench/kafka"
)

// changelogSettings are those of a changelog: nothing goes from it but what is cut off.
var changelogSettings = map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}

// checkTopics looks at the topics that are read and written, and makes those that may be made.
func (u *unit) checkTopics(ctx context.Context) (err error) {
	if u.cluster, err = kafka.Describe(ctx, u.options, u.topicNames()...); err != nil {
		return err
	}
	for s, side := range []*config.Side{&u.Config.A, &u.Config.B} {
		t, ok := u.cluster.Topics[side.Topic]
		if !ok {
			return fmt.Errorf("topic %s (%c.topic) is not there: check the name, and the brokers %s", side.Topic, "ab"[s], u.options)
		}
		u.topics[s] = t
	}
	if err := u.checkCounts(); err != nil {
		return err
	}
	made, err := u.makeTopics(ctx)
	if err != nil {
		return err
	}
	if made {
		if err := u.awaitTopics(ctx); err != nil {
			return err
		}
	}
	return u.checkChangelog()
}

// awaitTopics waits until the brokers show all topics: that one is made is said before each of them knows.
func (u *unit) awaitTopics(ctx context.Context) error {
	const most, again = 30 * time.Second, 50 * time.Millisecond
	for deadline := time.Now().Add(most); ; {
		err := u.patiently(ctx, "the topics that were made", func() (err error) {
			u.cluster, err = kafka.Describe(ctx, u.options, u.topicNames()...)
			return err
		})
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(u.topicNames(), func(name string) bool { return u.cluster.Topics[name].Partitions > 0 })
		if len(missing) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("topic %s was made, and the brokers do not show it after %s", strings.Join(missing, ", "), most)
		}
		if err := wait(ctx, again); err != nil {
			return err
		}
	}
}

// topicNames are all topics that are read or written.
func (u *unit) topicNames() []string {
	c := u.Config
	names := []string{c.A.Topic, c.B.Topic, c.Output.Topic, c.Topics.Late, c.Topics.Dead, c.Topics.Unmatched}
	if c.KeepsChangelog() {
		names = append(names, c.ChangelogTopic())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// checkCounts refuses topics that are both keyed by the record key and differ in their partitions: whoever filled them did not mean
// equal keys to lie in equal partitions.
func (u *unit) checkCounts() error {
	a, b := &u.topics[0], &u.topics[1]
	if a.Partitions == b.Partitions || !slices.Equal(u.Config.A.Key, []string{"@key"}) || !slices.Equal(u.Config.B.Key, []string{"@key"}) {
		return nil
	}
	return fmt.Errorf("topic %s has %d partitions and topic %s has %d, and both sides are joined on the record key (a.key and b.key are \"@key\"): "+
		"give both as many partitions, or name a field of the value as the key of one", a.Name, a.Partitions, b.Name, b.Partitions)
}

// makeTopics makes the changelog, and with CreateTopics the topics that are written, with as many partitions as the inputs have.
func (u *unit) makeTopics(ctx context.Context) (made bool, err error) {
	parts := max(u.topics[0].Partitions, u.topics[1].Partitions)
	var missing []string
	for _, name := range u.topicNames() {
		if _, ok := u.cluster.Topics[name]; ok {
			continue
		}
		made = true
		if u.Config.KeepsChangelog() && name == u.Config.ChangelogTopic() {
			if err := kafka.CreateTopic(ctx, u.options, name, 1, changelogSettings); err != nil {
				return false, fmt.Errorf("%w (the changelog; it may be made beforehand: %s)", err, createCommand(u.options, name, 1, changelogSettings))
			}
			u.Log.Info("made the changelog's topic", "topic", name)
			continue
		}
		if !u.CreateTopics {
			missing = append(missing, name)
			continue
		}
		if err := kafka.CreateTopic(ctx, u.options, name, parts, nil); err != nil {
			return false, err
		}
		u.Log.Info("made a topic", "topic", name, "partitions", parts)
	}
	if len(missing) > 0 {
		var how []string
		for _, name := range missing {
			how = append(how, createCommand(u.options, name, parts, nil))
		}
		return false, fmt.Errorf("not there, and to be written: topic %s. Make it, or have it made with --create-topics: %s",
			strings.Join(missing, ", "), strings.Join(how, "; "))
	}
	return made, nil
}

// createCommand is how people make a topic.
func createCommand(o kafka.Options, name string, parts int, settings map[string]string) string {
	text := fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions %d", o.Brokers[0], name, parts)
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		text += fmt.Sprintf(" --config %s=%s", k, settings[k])
	}
	return text
}

// checkChangelog refuses a changelog from which the broker may take what is still needed.
func (u *unit) checkChangelog() error {
	if !u.Config.KeepsChangelog() {
		return nil
	}
	t := u.cluster.Topics[u.Config.ChangelogTopic()]
	if t.Partitions != 1 {
		return fmt.Errorf("changelog %s has %d partitions, and must have 1, since its batches have one order: delete the topic, or take another group (kafka.group)",
			t.Name, t.Partitions)
	}
	for _, k := range slices.Sorted(maps.Keys(changelogSettings)) {
		if have, known := t.Settings[k]; known && have != changelogSettings[k] {
			return fmt.Errorf("changelog %s has %s=%s, and needs %s: the broker would delete what the join still needs. Set it: "+
				"kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%s",
				t.Name, k, have, changelogSettings[k], u.options.Brokers[0], t.Name, k, changelogSettings[k])
		}
	}
	return nil
}

// serveMark is kept beside the state: whose state it is.
type serveMark struct {
	Cluster, Group, Instance string
	Inputs                   [2]markedTopic
	Changelog                markedTopic
	Config                   uint64 // hash of what decides the results or the layout of the state
	Tasks                    int
}

// markedTopic is a topic as the state knows it: made anew it would be another one.
type markedTopic struct {
	Name, ID   string
	Partitions int
}

func (u *unit) mark() serveMark {
	m := serveMark{Cluster: u.cluster.ID, Group: u.Config.Kafka.Group, Instance: u.Config.Kafka.Instance, Config: u.fingerprint(), Tasks: u.tasks}
	marked := func(t kafka.Topic) markedTopic { return markedTopic{t.Name, t.ID, t.Partitions} }
	m.Inputs = [2]markedTopic{marked(u.topics[0]), marked(u.topics[1])}
	if u.Config.KeepsChangelog() {
		m.Changelog = marked(u.cluster.Topics[u.Config.ChangelogTopic()])
	}
	return m
}

// differs says what of a state's mark is not as it is now, and what to do; "" if nothing.
func (u *unit) differs(have, now serveMark) string {
	again := fmt.Sprintf("remove %s to have the state made anew from the changelog", u.StateDir)
	if now.Changelog.Name == "" {
		again = fmt.Sprintf("take another group (kafka.group) to start anew, or give the state another directory than %s", u.StateDir)
	}
	switch {
	case have.Group != now.Group || have.Instance != now.Instance:
		return fmt.Sprintf("the state is that of group %q, instance %q: give another directory (--state-dir)", have.Group, have.Instance)
	case have.Cluster != now.Cluster:
		return fmt.Sprintf("the state belongs to cluster %s, and this is %s: check kafka.brokers, or give another directory (--state-dir)", have.Cluster, now.Cluster)
	case have.Inputs != now.Inputs:
		return fmt.Sprintf("the state was made of topics %v, and now they are %v (name, id, partitions): its positions would be wrong. Take another group (kafka.group) to start anew",
			have.Inputs, now.Inputs)
	case have.Changelog != now.Changelog:
		return fmt.Sprintf("the state's changelog was %v, and now it is %v (name, id, partitions): take another group (kafka.group) to start anew", have.Changelog, now.Changelog)
	case have.Config != now.Config:
		return "the state was made with another configuration (window, keys, type and the like decide what waits): give the same, or take another group (kafka.group) to start anew"
	case have.Tasks != now.Tasks:
		return fmt.Sprintf("the state has %d tasks, and state.tasks says %d: give the same, or auto; or %s", have.Tasks, now.Tasks, again)
	}
	return ""
}

// fingerprint hashes what decides the results or the layout of the state. How the brokers are reached, where results go and what the
// memory is may change.
func (u *unit) fingerprint() uint64 {
	h := fnv.New64a()
	for _, v := range u.Config.Values() {
		switch k := v.Key; {
		case strings.HasPrefix(k, "kafka."), strings.HasPrefix(k, "topics."), strings.HasPrefix(k, "output."), k == "delivery", k == "max_pending":
		case k == "a.deleted", k == "a.fetch_cache", k == "a.keep" && u.Config.A.Store == "offset": // nothing that waits has a body
		case slices.Contains([]string{"state.dir", "state.memory", "state.filter", "state.sync", "state.tasks"}, k):
		default:
			_, _ = fmt.Fprintf(h, "%s=%s\n", k, v.Text)
		}
	}
	_, _ = fmt.Fprintf(h, "changelog=%v\n", u.Config.KeepsChangelog())
	return h.Sum64()
}
