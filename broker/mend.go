package broker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"
)

// kfake's files of producers and groups are lines in a frame:
//
//	length of what follows the checksum, 4 | its CRC-32C, 4 | version 1, 2 | JSON
const (
	pidsLog      = "pids.log"
	groupsLog    = "groups.log"
	windowsFile  = "seq_windows.json"
	lineHead     = 10
	linesVersion = 1
)

// producer is a line of the log of producers.
type producer struct {
	Type    string `json:"type"` // init, endtx, timeout
	Pid     int64  `json:"pid"`
	Epoch   int16  `json:"epoch"`
	Txid    string `json:"txid,omitempty"`
	Timeout int32  `json:"timeout,omitempty"`
	Commit  *bool  `json:"commit,omitempty"` // whether the last transaction was committed
}

// groupOffset is a line of the log of groups.
type groupOffset struct {
	Type      string  `json:"type"`
	Group     string  `json:"g"`
	Topic     string  `json:"t"`
	Partition int32   `json:"p,omitempty"`
	Offset    int64   `json:"o,omitempty"`
	Epoch     int32   `json:"e,omitempty"`
	Metadata  *string `json:"m,omitempty"`
	At        int64   `json:"lc"` // ms
}

// window is what retries of a producer are known by in a partition: its last five batches.
type window struct {
	Pid       int64          `json:"pid"`
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Entries   [5]windowEntry `json:"entries"`
	Count     uint8          `json:"count"`
	At        uint8          `json:"at"`
	Epoch     int16          `json:"epoch"`
	Seen      bool           `json:"seen"`
	Next      int32          `json:"next_seq"`
}

type windowEntry struct {
	First  int32 `json:"first_seq"`
	Next   int32 `json:"next_seq"`
	Offset int64 `json:"offset"`
}

// mend makes a directory whole before kfake opens it. Killed while it mends, it mends again: each step finds what was done.
func mend(dir string, crashed bool) error {
	if _, err := os.Stat(filepath.Join(dir, "meta.json")); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever here
	}
	logs, err := readLogs(dir)
	if err != nil {
		return err
	}
	if err := beginEmpty(dir, logs); err != nil || !crashed {
		return err
	}
	intent := unfinished(dir)
	producers, err := readProducers(dir)
	if err != nil {
		return err
	}
	for _, l := range logs {
		for pid, epoch := range l.open() {
			if err := l.finish(pid, epoch, intent != nil && intent.Pid == pid && intent.Epoch == epoch); err != nil {
				return err
			}
		}
	}
	if err := cutLines(filepath.Join(dir, groupsLog)); err != nil {
		return err
	}
	if intent != nil {
		if err := commitOffsets(dir, intent); err != nil {
			return err
		}
		if p := producers[intent.Pid]; p != nil {
			p.ended(intent.Epoch, true)
		}
	}
	for _, l := range logs {
		for _, s := range l.segments {
			for _, b := range s.batches {
				if p := producers[b.pid]; p != nil && b.control {
					p.ended(b.epoch, b.commits)
				}
			}
		}
	}
	if err := writeWindows(dir, logs); err != nil {
		return err
	}
	return writeProducers(dir, producers)
}

// ended takes in that a transaction has an end. Its producer's next one has another epoch; kfake, killed, may not have come to write that.
// The client is told with its next request that it is fenced, or, if that asks for the same end, that this is done.
func (p *producer) ended(epoch int16, committed bool) {
	if epoch == p.Epoch && epoch < math.MaxInt16 {
		p.Epoch, p.Commit = epoch+1, &committed
	}
}

// beginEmpty lets logs whose records were all deleted go on where they were.
func beginEmpty(dir string, logs []*plog) error {
	known := map[topicPartition]*plog{}
	for _, l := range logs {
		known[l.topicPartition] = l
	}
	for tp, at := range readStarts(dir) {
		if l := known[tp]; l != nil && l.end() == 0 {
			if err := l.begin(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfinished is the commit that kfake had begun; nil without one.
func unfinished(dir string) *commit {
	var c commit
	if readJSON(filepath.Join(dir, commitFile), &c) != nil || c.PidsSize != size(filepath.Join(dir, pidsLog)) {
		return nil
	}
	return &c
}

func commitOffsets(dir string, c *commit) error {
	var out []byte
	for _, o := range c.Offsets {
		line := groupOffset{"commit", o.Group, o.Topic, o.Partition, o.Offset, o.Epoch, o.Metadata, time.Now().UnixMilli()}
		var err error
		if out, err = appendLine(out, line); err != nil {
			return err
		}
	}
	return appendFile(filepath.Join(dir, groupsLog), out)
}

// readProducers is what is known of each, by the last that was written.
func readProducers(dir string) (map[int64]*producer, error) {
	data, err := os.ReadFile(filepath.Join(dir, pidsLog))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[int64]*producer{}
	err = eachLine(data, func(line []byte) error {
		var p producer
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		have := all[p.Pid]
		if have == nil || p.Type == "init" {
			if have != nil && p.Commit == nil { // kfake forgets it with each new epoch, and a client that asks again is told a lie
				p.Commit = have.Commit
			}
			all[p.Pid] = &p
			return nil
		}
		have.Epoch = p.Epoch
		if p.Commit != nil {
			have.Commit = p.Commit
		} else {
			have.Commit = new(bool)
		}
		return nil
	})
	return all, err
}

// writeProducers writes the log anew, one line each.
func writeProducers(dir string, all map[int64]*producer) error {
	var out []byte
	for _, p := range all {
		p.Type = "init"
		var err error
		if out, err = appendLine(out, p); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, pidsLog)
	if err := os.WriteFile(path+".tmp", out, 0o644); err != nil {
		return err
	}
	// The intent goes first: a log of the length it names could be written by chance.
	if err := os.Remove(filepath.Join(dir, commitFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// writeWindows finds in the logs what retries are known by.
func writeWindows(dir string, logs []*plog) error {
	list := []*window{}
	for _, l := range logs {
		last := map[int64]*window{}
		for _, s := range l.segments {
			for _, b := range s.batches {
				if b.control || b.pid < 0 {
					continue
				}
				w := last[b.pid]
				if w == nil || w.Epoch != b.epoch {
					w = &window{Pid: b.pid, Topic: l.topic, Partition: l.partition, Epoch: b.epoch, Seen: true}
					last[b.pid] = w
				}
				w.Next = int32((int64(b.sequence) + int64(b.records)) % math.MaxInt32)
				w.Entries[w.At] = windowEntry{b.sequence, w.Next, b.offset}
				w.At = (w.At + 1) % uint8(len(w.Entries))
				w.Count = min(w.Count+1, uint8(len(w.Entries)))
			}
		}
		for _, w := range last {
			list = append(list, w)
		}
	}
	return replace(filepath.Join(dir, windowsFile), struct {
		Version int       `json:"version"`
		Windows []*window `json:"windows"`
	}{1, list})
}

// eachLine calls f for each whole line of a log.
func eachLine(data []byte, f func([]byte) error) error {
	_, err := lines(data, f)
	return err
}

// lines also says how far the whole lines go.
func lines(data []byte, f func([]byte) error) (whole int, err error) {
	le := binary.LittleEndian
	for len(data)-whole >= lineHead {
		rest := data[whole:]
		n := int(le.Uint32(rest)) + 8
		if n < lineHead || n > len(rest) || crc32.Checksum(rest[8:n], castagnoli) != le.Uint32(rest[4:]) {
			break
		}
		if err := f(rest[lineHead:n]); err != nil {
			return whole, err
		}
		whole += n
	}
	return whole, nil
}

// cutLines cuts off a last line that is not whole: kfake would write behind it, and never read that.
func cutLines(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	whole, err := lines(data, func([]byte) error { return nil })
	if err != nil || whole == len(data) {
		return err
	}
	return os.Truncate(path, int64(whole))
}

func appendLine(out []byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	at := len(out)
	out = le.AppendUint32(out, uint32(2+len(data)))
	out = le.AppendUint32(out, 0)
	out = le.AppendUint16(out, linesVersion)
	out = append(out, data...)
	le.PutUint32(out[at+4:], crc32.Checksum(out[at+8:], castagnoli))
	return out, nil
}
