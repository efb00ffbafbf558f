package ops

import (
	"fmt"
	"slices"

	"joinbench/kafka"
	"joinbench/results"
)

// byRecordKey says whether both sides join on their record keys, so that equal keys could lie in equal partitions.
func (x *examining) byRecordKey() bool {
	return slices.Equal(x.j.A.Key, []string{"@key"}) && slices.Equal(x.j.B.Key, []string{"@key"})
}

// partitions compares the topics' numbers of partitions.
func (x *examining) partitions() {
	a, b := x.inputs[0].topic, x.inputs[1].topic
	if a == nil || b == nil {
		return
	}
	value := fmt.Sprintf("%s has %d, %s has %d", a.Name, a.Partitions, b.Name, b.Partitions)
	switch {
	case a.Partitions == b.Partitions:
		x.ok("partitions", value)
	case x.byRecordKey():
		x.bad("partitions", value, "both sides are joined by their record keys, and equal keys do not lie in equal partitions: serve refuses this. "+
			"Give both topics the same number of partitions")
	default:
		x.ok("partitions", value+"; a key in the body may be in any, so the numbers need not agree")
	}
}

// misplaced is from which share of keys on partitions do not look like a partitioner's work. Keys that somebody placed by hand, and those that
// lie where they were before partitions were added, are fewer.
const misplaced = 0.02

// partitioners asks by which hash the record keys were placed (murmur2, crc32, …), and whether both topics agree.
func (x *examining) partitioners() {
	a, b := &x.inputs[0], &x.inputs[1]
	if !sampled(a) || !sampled(b) || a.topic.Partitions != b.topic.Partitions || a.topic.Partitions == 1 {
		return
	}
	if !x.byRecordKey() {
		x.ok("partitioner", "not looked at: the join key is not the record key on both sides")
		return
	}
	pa, pb := kafka.Judge(a.sample), kafka.Judge(b.sample)
	if pa.Keys == 0 || pb.Keys == 0 {
		x.ok("partitioner", "no record keys to look at")
		return
	}
	common, apart := kafka.Apart(a.sample, b.sample)
	value := placed(a.sample.Topic, &pa) + "; " + placed(b.sample.Topic, &pb)
	if common > 0 {
		value += fmt.Sprintf("; of %s in both samples %s lie in different partitions", count(common, "key"), results.Percent(float64(apart)/float64(common)))
	}
	switch {
	case float64(apart) > misplaced*float64(common), pa.Fits[0].Name != pb.Fits[0].Name && fits(&pa) && fits(&pb):
		x.warn("partitioner", value, "whoever joins partition by partition misses these pairs, and nothing fails: have both producers use one partitioner (librdkafka: "+
			"partitioner=murmur2_random is what Java does). One process that reads all partitions, as serve does, finds them all the same")
	case !fits(&pa) || !fits(&pb):
		x.warn("partitioner", value, "keys were placed by hand or by a hash that is not known here, or partitions were added since: see that both topics agree "+
			"before anybody joins them partition by partition. One process that reads all partitions, as serve does, finds all pairs")
	default:
		x.ok("partitioner", value)
	}
}

func sampled(in *input) bool {
	return in.topic != nil && in.sample != nil && len(in.sample.Records) > 0
}

// fits says whether one partitioner explains all but a few keys.
func fits(p *kafka.Placement) bool {
	return float64(p.Keys-p.Fits[0].Keys) <= misplaced*float64(p.Keys)
}

// placed says who placed the keys of a topic: murmur2 is what is expected.
func placed(topic string, p *kafka.Placement) string {
	n, best := count(p.Keys, "sampled key"), &p.Fits[0]
	if best.Name == "murmur2" && fits(p) {
		return fmt.Sprintf("%s: %s where murmur2 puts them (%s)", topic, n, best.Clients)
	}
	off := results.Percent(1 - float64(p.Of("murmur2"))/float64(p.Keys))
	text := fmt.Sprintf("%s: %s of %s are not where murmur2 puts them", topic, off, n)
	if fits(p) {
		return text + fmt.Sprintf("; they look like %s (%s)", best.Name, best.Clients)
	}
	return text + ", nor where any partitioner known here would have"
}
