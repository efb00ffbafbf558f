package broker

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What kfake is about to do is written down in two files of ours beside its own. Each is replaced as a whole, so it has the
// last word or the one before, and never half of one.
const (
	commitFile = "joinbench-commit.json" // the last transaction that was to be committed
	startsFile = "joinbench-starts.json" // where logs begin since records were deleted
)

// commit is a transaction that is to be committed. Its records need not be named: they are what is open of the producer in this epoch.
type commit struct {
	Pid     int64    `json:"pid"`
	Epoch   int16    `json:"epoch"`
	Offsets []offset `json:"offsets"`
	// PidsSize is how long kfake's log of producers was. kfake does one thing at a time, and a line in that log is the last thing it does for a
	// commit: if the log has another length, the commit was done, or refused by one that was done later.
	PidsSize int64 `json:"pids_size"`
}

// offset is a group's offset inside a transaction.
type offset struct {
	Group     string  `json:"group"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Epoch     int32   `json:"epoch"`
	Metadata  *string `json:"metadata,omitempty"`
}

// start is where a log begins, at least.
type start struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// intents sees requests before kfake does. kfake waits for its answer before it goes on, so there is one call at a time.
type intents struct {
	cluster *kfake.Cluster
	dir     string
	staged  map[int64]*commit // by producer
	starts  map[topicPartition]int64
}

type topicPartition struct {
	topic     string
	partition int32
}

// watch has a cluster's intents written to a directory.
func watch(c *kfake.Cluster, dir string) {
	w := &intents{cluster: c, dir: dir, staged: map[int64]*commit{}, starts: readStarts(dir)}
	for key, see := range map[kmsg.Key]func(kmsg.Request) error{
		kmsg.TxnOffsetCommit: w.offsets, kmsg.EndTxn: w.end, kmsg.DeleteRecords: w.deleted, kmsg.DeleteTopics: w.dropped,
	} {
		c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			// An intent that cannot be written must not be carried out: the connection is cut, the client asks again.
			if err := see(req); err != nil {
				c.KeepControl()
				return nil, err, true
			}
			return nil, nil, false
		})
	}
}

// offsets remembers a transaction's offsets: kfake has them in RAM until the end.
func (w *intents) offsets(r kmsg.Request) error {
	req := r.(*kmsg.TxnOffsetCommitRequest)
	c := w.staged[req.ProducerID]
	if c == nil || c.Epoch != req.ProducerEpoch {
		c = &commit{Pid: req.ProducerID, Epoch: req.ProducerEpoch}
		w.staged[req.ProducerID] = c
	}
	for _, t := range req.Topics {
		name := t.Topic
		if name == "" { // from version 6 on topics go by their ids
			if info := w.cluster.TopicIDInfo(t.TopicID); info != nil {
				name = info.Topic
			}
		}
		for _, p := range t.Partitions {
			c.Offsets = append(c.Offsets, offset{req.Group, name, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata})
		}
	}
	return nil
}

// end writes down that a transaction is to be committed. Before version 5 a producer's epoch stays, and its next transaction
// could be taken for this one: such clients live with what kfake does.
func (w *intents) end(r kmsg.Request) error {
	req := r.(*kmsg.EndTxnRequest)
	c := w.staged[req.ProducerID]
	delete(w.staged, req.ProducerID)
	if !req.Commit || req.Version < 5 {
		return nil
	}
	if c == nil || c.Epoch != req.ProducerEpoch {
		c = &commit{Pid: req.ProducerID, Epoch: req.ProducerEpoch}
	}
	c.PidsSize = size(filepath.Join(w.dir, pidsLog))
	return replace(filepath.Join(w.dir, commitFile), c)
}

// deleted writes down where logs begin after records are deleted; kfake does that at a clean end, and not at all of an empty log.
func (w *intents) deleted(r kmsg.Request) error {
	req := r.(*kmsg.DeleteRecordsRequest)
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			info := w.cluster.PartitionInfo(t.Topic, p.Partition)
			if info == nil {
				continue
			}
			to := p.Offset
			if to == -1 {
				to = info.HighWatermark
			}
			if to <= info.HighWatermark && to > info.LogStartOffset {
				w.starts[topicPartition{t.Topic, p.Partition}] = to
			}
		}
	}
	return w.writeStarts()
}

// dropped forgets where the logs of a topic began: one of the same name begins anew.
func (w *intents) dropped(r kmsg.Request) error {
	req := r.(*kmsg.DeleteTopicsRequest)
	names := slices.Clone(req.TopicNames)
	for _, t := range req.Topics {
		if t.Topic != nil {
			names = append(names, *t.Topic)
		} else if info := w.cluster.TopicIDInfo(t.TopicID); info != nil {
			names = append(names, info.Topic)
		}
	}
	before := len(w.starts)
	maps.DeleteFunc(w.starts, func(tp topicPartition, _ int64) bool { return slices.Contains(names, tp.topic) })
	if len(w.starts) == before {
		return nil
	}
	return w.writeStarts()
}

func (w *intents) writeStarts() error {
	list := make([]start, 0, len(w.starts))
	for tp, o := range w.starts {
		list = append(list, start{tp.topic, tp.partition, o})
	}
	return replace(filepath.Join(w.dir, startsFile), list)
}

func readStarts(dir string) map[topicPartition]int64 {
	var list []start
	starts := map[topicPartition]int64{}
	if readJSON(filepath.Join(dir, startsFile), &list) == nil {
		for _, s := range list {
			starts[topicPartition{s.Topic, s.Partition}] = s.Offset
		}
	}
	return starts
}

// size is a file's; a file that does not exist has none.
func size(path string) int64 {
	if info, err := os.Stat(path); err == nil {
		return info.Size()
	}
	return 0
}

// replace puts a value in a file's place, as a whole.
func replace(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
