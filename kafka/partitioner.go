package kafka

import (
	"cmp"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producers choose a record's partition by a hash of its key, and which hash is the client's affair. Topics with the same number of
// partitions whose producers do not agree have the same key in different partitions, and no broker says a word about it.

// Partitioner is one way of choosing.
type Partitioner struct {
	Name    string
	Clients string // whose it is
	of      func(key []byte, partitions int) int
}

// Of is the partition of a key, which is not empty: clients do not agree about that one even with the same hash.
func (p *Partitioner) Of(key []byte, partitions int) int { return p.of(key, partitions) }

// Partitioners are those that are in use, the commonest first.
func Partitioners() []Partitioner {
	java := kgo.StickyKeyPartitioner(nil).ForTopic("") // with a key it is murmur2 as Kafka's own clients have it
	return []Partitioner{
		{"murmur2", "Java, Kafka Streams, Connect, franz-go, kafka-python; librdkafka with murmur2 or murmur2_random",
			func(key []byte, n int) int { return java.Partition(&kgo.Record{Key: key}, n) }},
		{"crc32", "librdkafka's default, and so Python's, Go's and .NET's confluent-kafka and kcat",
			func(key []byte, n int) int { return int(crc32.ChecksumIEEE(key) % uint32(n)) }},
		{"fnv1a", "Sarama and segmentio/kafka-go; librdkafka with fnv1a or fnv1a_random", kgo.SaramaCompatHasher(fnv1a)},
		{"fnv1a (reference)", "Sarama's reference hash partitioner", kgo.KafkaHasher(fnv1a)},
	}
}

func fnv1a(key []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(key)
	return h.Sum32()
}

// Fit is how many keys lie where a partitioner puts them.
type Fit struct {
	Partitioner
	Keys int
}

// Placement is what the places of sampled keys say about who put them there.
type Placement struct {
	Keys int   // different ones, without the empty key
	Fits []Fit // of all partitioners, the best first
}

// Judge compares where the keys of a sample lie with where each partitioner would have put them.
func Judge(s *Sample) Placement {
	p := Placement{}
	for _, one := range Partitioners() {
		p.Fits = append(p.Fits, Fit{Partitioner: one})
	}
	for key, at := range s.places() {
		p.Keys++
		for i := range p.Fits {
			if p.Fits[i].Of([]byte(key), s.Partitions) == int(at) {
				p.Fits[i].Keys++
			}
		}
	}
	slices.SortStableFunc(p.Fits, func(a, b Fit) int { return cmp.Compare(b.Keys, a.Keys) })
	return p
}

// Of is how many keys lie where a partitioner puts them.
func (p *Placement) Of(name string) int {
	for _, f := range p.Fits {
		if f.Name == name {
			return f.Keys
		}
	}
	return 0
}

// Apart counts the keys that two samples have in common, and those of them that lie in partitions of different numbers. It is
// right whoever chose the partitions.
func Apart(a, b *Sample) (common, apart int) {
	there := b.places()
	for key, at := range a.places() {
		other, ok := there[key]
		if !ok {
			continue
		}
		common++
		if at != other {
			apart++
		}
	}
	return common, apart
}

// places are the partitions of the keys that a sample has; of a key in several it is the latest one seen. The empty key is left out, and
// so are records without.
func (s *Sample) places() map[string]int32 {
	at := map[string]int32{}
	for i := range s.Records {
		if r := &s.Records[i]; len(r.Key) > 0 {
			at[string(r.Key)] = r.Partition
		}
	}
	return at
}
