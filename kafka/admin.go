package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topic is what the cluster says about a topic.
type Topic struct {
	Name       string
	ID         string // "" of a broker that has none
	Partitions int
	MaxBytes   int32             // max.message.bytes
	Settings   map[string]string // all of them
}

func newTopic(d kadm.TopicDetail) Topic {
	t := Topic{Name: d.Topic, Partitions: len(d.Partitions), MaxBytes: defaultMaxBytes, Settings: map[string]string{}}
	if d.ID != (kadm.TopicID{}) {
		t.ID = d.ID.String()
	}
	return t
}

// set takes over settings.
func (t *Topic) set(list []kadm.Config) {
	for _, s := range list {
		t.Settings[s.Key] = s.MaybeValue()
	}
	if n, err := strconv.ParseInt(t.Settings["max.message.bytes"], 10, 32); err == nil && n > 0 {
		t.MaxBytes = int32(n)
	}
}

// Cluster is what a cluster says about itself.
type Cluster struct {
	ID     string
	Topics map[string]Topic // those that were asked for and are there
}

// Describe asks about topics; one that is not there is left out.
func Describe(ctx context.Context, o Options, topics ...string) (*Cluster, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	meta, err := adm.Metadata(ctx, topics...)
	if err != nil {
		return nil, explain(err)
	}
	c := &Cluster{ID: meta.Cluster, Topics: map[string]Topic{}}
	var there []string
	for _, name := range topics {
		switch t, ok := meta.Topics[name]; {
		case !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition):
		case t.Err != nil:
			return nil, fmt.Errorf("topic %s: %w", name, explain(t.Err))
		default:
			c.Topics[name] = newTopic(t)
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return c, nil
	}
	configs, err := adm.DescribeTopicConfigs(ctx, there...)
	if err != nil {
		return nil, explain(err)
	}
	for _, r := range configs {
		t := c.Topics[r.Name]
		if r.Err != nil { // a right that is not needed for more than this
			o.log().Warn("the settings of a topic cannot be read: Kafka's own are assumed", "topic", r.Name, "error", r.Err)
			continue
		}
		t.set(r.Configs)
		c.Topics[r.Name] = t
	}
	return c, nil
}

// CreateTopic makes a topic with so many partitions, the cluster's own replication factor, and settings. One that is there
// already is no error.
func CreateTopic(ctx context.Context, o Options, name string, partitions int, settings map[string]string) error {
	cl, err := o.dial()
	if err != nil {
		return err
	}
	defer cl.Close()
	values := map[string]*string{}
	for k, v := range settings {
		values[k] = &v
	}
	_, err = kadm.NewClient(cl).CreateTopic(ctx, int32(partitions), -1, values, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("creating topic %s: %w", name, explain(err))
	}
	return nil
}

// Delete removes topics and groups. What is not there is no error.
func Delete(ctx context.Context, o Options, topics, groups []string) error {
	cl, err := o.dial()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	var errs []error
	gone, err := adm.DeleteTopics(ctx, topics...)
	errs = append(errs, err)
	for _, t := range gone {
		if t.Err != nil && !errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("deleting topic %s: %w", t.Topic, t.Err))
		}
	}
	left, err := adm.DeleteGroups(ctx, groups...)
	errs = append(errs, err)
	for _, g := range left {
		if g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound) {
			errs = append(errs, fmt.Errorf("deleting group %s: %w", g.Group, g.Err))
		}
	}
	return errors.Join(errs...)
}

// Versions are the releases of Kafka that the brokers seem to be, by the requests that they know: a broker does not say its own.
func Versions(ctx context.Context, o Options) ([]string, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	all, err := kadm.NewClient(cl).ApiVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the brokers for their versions: %w", explain(err))
	}
	return releases(all), nil
}

// releases are those of brokers that answered, each once.
func releases(all kadm.BrokersApiVersions) []string {
	var list []string
	for _, b := range all {
		if b.Err == nil {
			list = append(list, b.VersionGuess())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// dial makes a client for requests of its own. The caller closes it.
func (o Options) dial() (*kgo.Client, error) {
	opts, err := o.clientOpts()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(opts...)
}

// pause waits, or for the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
