package kafka

import (
	"fmt"
	"testing"

	"joinbench/projection"
)

// The hashes are those of the clients that they are named after: values of Kafka's own tests (UtilsTest.testMurmur2), and those of CRC-32 and
// FNV-1a that everybody prints for these words.
func TestPartitioners(t *testing.T) {
	const most = 1<<31 - 1 // as many partitions show the hash itself
	for name, want := range map[string]map[string]int{
		"murmur2": {"21": -973932308 & most % most, "foobar": -790332482 & most % most, "a-little-bit-long-string": -985981536 & most % most,
			"a-little-bit-longer-string": -1486304829 & most % most, "abc": 479470107},
		"crc32":             {"123456789": 0xcbf43926 % most, "a": 0xe8b7be43 % most},
		"fnv1a":             {"a": 1<<32 - 0xe40c292c, "foobar": 1<<32 - 0xbf9cf968}, // negative as int32
		"fnv1a (reference)": {"a": 0x640c292c, "foobar": 0x3f9cf968},
	} {
		for _, p := range Partitioners() {
			if p.Name != name {
				continue
			}
			for key, at := range want {
				if got := p.Of([]byte(key), most); got != at {
					t.Errorf("%s puts %q in %d, want %d", name, key, got, at)
				}
			}
		}
	}
}

// sampleOf places keys as a partitioner would.
func sampleOf(t *testing.T, name string, partitions, keys int) *Sample {
	t.Helper()
	s := &Sample{Topic: name, Partitions: partitions}
	for _, p := range Partitioners() {
		if p.Name != name {
			continue
		}
		for i := range keys {
			key := fmt.Appendf(nil, "key-%d", i)
			s.Records = append(s.Records, projection.Record{Key: key, Partition: int32(p.Of(key, partitions))})
		}
	}
	if len(s.Records) != keys {
		t.Fatalf("no partitioner %s", name)
	}
	return s
}

// Each is told from the others, and a tenth of the keys of another hash is seen as such.
func TestJudgeTellsPartitionersApart(t *testing.T) {
	for _, p := range Partitioners() {
		s := sampleOf(t, p.Name, 12, 500)
		got := Judge(s)
		if got.Keys != 500 || got.Fits[0].Name != p.Name || got.Fits[0].Keys != 500 {
			t.Errorf("%s: %d keys, best %s with %d", p.Name, got.Keys, got.Fits[0].Name, got.Fits[0].Keys)
		}
		if second := got.Fits[1].Keys; second > 350 { // the two of FNV-1a agree about half of the hashes
			t.Errorf("%s: %s fits too, %d of 500", p.Name, got.Fits[1].Name, second)
		}
		for i := range 50 {
			s.Records[i].Partition = (s.Records[i].Partition + 1) % 12
		}
		if got = Judge(s); got.Fits[0].Name != p.Name || got.Fits[0].Keys != 450 {
			t.Errorf("%s with 50 moved keys: best %s with %d", p.Name, got.Fits[0].Name, got.Fits[0].Keys)
		}
	}
}

// A key counts once however often it comes; the empty key and records without say nothing.
func TestJudgeCountsKeys(t *testing.T) {
	s := sampleOf(t, "murmur2", 4, 10)
	s.Records = append(s.Records, s.Records...)
	s.Records = append(s.Records, projection.Record{Key: []byte{}, Partition: 3}, projection.Record{Partition: 2})
	if got := Judge(s); got.Keys != 10 || got.Of("murmur2") != 10 {
		t.Errorf("%d keys, %d of them by murmur2; want 10 and 10", got.Keys, got.Of("murmur2"))
	}
}

func TestApart(t *testing.T) {
	a, b := sampleOf(t, "murmur2", 8, 1000), sampleOf(t, "crc32", 8, 1200)
	common, apart := Apart(a, b)
	if common != 1000 || apart < 840 || apart > 910 { // 7 of 8 by chance
		t.Errorf("%d in common, %d apart", common, apart)
	}
	if common, apart = Apart(a, a); common != 1000 || apart != 0 {
		t.Errorf("with itself: %d in common, %d apart", common, apart)
	}
}
