package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// kfake keeps a partition in a folder of segments: <first offset>.dat has record batches as Kafka sends them, one behind the other;
// <first offset>.idx has 15 bytes for each, matched by position alone:
//
//	version 1 | low byte of the CRC-32C of what follows | leader epoch, 4 | largest timestamp so far, 8 | in a transaction, 1
const (
	partitionsDir = "partitions"
	indexEntry    = 15
	batchHead     = 61 // of a record batch
	lengthAt      = 12 // a batch's length counts from behind itself
)

// batch is what a record batch's head says.
type batch struct {
	at, size     int64 // in its segment
	offset, last int64 // of its first and last record
	leaderEpoch  int32
	largest      int64 // timestamp, ms
	pid          int64
	epoch        int16
	sequence     int32
	records      int32
	transaction  bool
	control      bool
	commits      bool // of a control batch
}

// plog is the log of one partition.
type plog struct {
	topicPartition
	dir      string
	segments []*segment
}

type segment struct {
	base    int64
	batches []batch
}

// readLogs reads the heads of all batches, cuts off a last one that is not whole, and makes index and data fit together.
func readLogs(dir string) ([]*plog, error) {
	entries, err := os.ReadDir(filepath.Join(dir, partitionsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var logs []*plog
	for _, e := range entries {
		cut := strings.LastIndexByte(e.Name(), '-')
		if cut < 0 || !e.IsDir() {
			continue
		}
		topic, err1 := url.PathUnescape(e.Name()[:cut])
		partition, err2 := strconv.ParseInt(e.Name()[cut+1:], 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		l := &plog{topicPartition: topicPartition{topic, int32(partition)}, dir: filepath.Join(dir, partitionsDir, e.Name())}
		if err := l.read(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		logs = append(logs, l)
	}
	return logs, nil
}

func (l *plog) read() error {
	names, err := filepath.Glob(filepath.Join(l.dir, "*.dat"))
	if err != nil {
		return err
	}
	for _, name := range names {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".dat"), 10, 64)
		if err != nil {
			return err
		}
		l.segments = append(l.segments, &segment{base: base})
	}
	slices.SortFunc(l.segments, func(a, b *segment) int { return int(min(1, max(-1, a.base-b.base))) })
	for _, s := range l.segments {
		if err := s.read(l.file(s, ".dat")); err != nil {
			return err
		}
		if err := l.index(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *plog) file(s *segment, suffix string) string {
	return filepath.Join(l.dir, strconv.FormatInt(s.base, 10)+suffix)
}

// read reads a segment's batches. What is not a whole batch at its end was being written when the broker was killed, and nobody was told of it.
func (s *segment) read(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	end := size(path)
	head := make([]byte, batchHead)
	at := int64(0)
	for at+batchHead <= end {
		if _, err := f.ReadAt(head, at); err != nil {
			return err
		}
		b := parse(head)
		b.at = at
		if b.size < batchHead || at+b.size > end {
			break
		}
		if b.control || at+b.size == end {
			whole := make([]byte, b.size)
			if _, err := f.ReadAt(whole, at); err != nil {
				return err
			}
			if !sound(whole) {
				break
			}
			b.commits = b.control && commits(whole)
		}
		s.batches = append(s.batches, b)
		at += b.size
	}
	if at < end {
		return f.Truncate(at)
	}
	return nil
}

func parse(h []byte) batch {
	be := binary.BigEndian
	attributes := be.Uint16(h[21:])
	b := batch{
		offset: int64(be.Uint64(h)), size: lengthAt + int64(be.Uint32(h[8:])), leaderEpoch: int32(be.Uint32(h[12:])),
		largest: int64(be.Uint64(h[35:])), pid: int64(be.Uint64(h[43:])), epoch: int16(be.Uint16(h[51:])),
		sequence: int32(be.Uint32(h[53:])), records: int32(be.Uint32(h[57:])),
		transaction: attributes&0x10 != 0, control: attributes&0x20 != 0,
	}
	b.last = b.offset + int64(int32(be.Uint32(h[23:])))
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sound says whether a batch is what was written: its checksum is over all that follows it.
func sound(whole []byte) bool {
	return crc32.Checksum(whole[21:], castagnoli) == binary.BigEndian.Uint32(whole[17:])
}

// commits says whether a control batch is the end of a transaction that was committed. One that cannot be read is not.
func commits(whole []byte) bool {
	var rb kmsg.RecordBatch
	var r kmsg.Record
	var key kmsg.ControlRecordKey
	return rb.ReadFrom(whole) == nil && r.ReadFrom(rb.Records) == nil && key.ReadFrom(r.Key) == nil &&
		key.Type == kmsg.ControlRecordKeyTypeCommit
}

// index reads which batches are in a transaction: the batches themselves keep saying so when kfake has compacted its end away.
// An index that has not one entry for each batch is written anew: killed between the two files, kfake would give each later batch
// the entry of the one after.
func (l *plog) index(s *segment) error {
	path := l.file(s, ".idx")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out []byte
	for i := range s.batches {
		b := &s.batches[i]
		if at := i * indexEntry; at+indexEntry <= len(data) {
			b.transaction = b.transaction && data[at+indexEntry-1] != 0
		}
		out = appendIndex(out, *b)
	}
	if len(data) == len(out) {
		return nil
	}
	return os.WriteFile(path, out, 0o644)
}

func appendIndex(out []byte, b batch) []byte {
	var e [indexEntry]byte
	e[0] = 1
	binary.LittleEndian.PutUint32(e[2:], uint32(b.leaderEpoch))
	binary.LittleEndian.PutUint64(e[6:], uint64(b.largest)) // kfake works this one out again
	if b.transaction && !b.control {
		e[14] = 1
	}
	e[1] = byte(crc32.Checksum(e[2:], castagnoli))
	return append(out, e[:]...)
}

// end is the offset that the next record gets.
func (l *plog) end() int64 {
	for _, s := range slices.Backward(l.segments) {
		if n := len(s.batches); n > 0 {
			return s.batches[n-1].last + 1
		}
	}
	return 0
}

// open finds the producers whose transaction has no end in this log.
func (l *plog) open() map[int64]int16 {
	open := map[int64]int16{}
	for _, s := range l.segments {
		for _, b := range s.batches {
			if b.control {
				delete(open, b.pid)
			} else if b.transaction {
				open[b.pid] = b.epoch
			}
		}
	}
	return open
}

// finish ends a producer's transaction in this log.
func (l *plog) finish(pid int64, epoch int16, committed bool) error {
	last := l.segments[len(l.segments)-1]
	leader := int32(0)
	if n := len(last.batches); n > 0 {
		leader = last.batches[n-1].leaderEpoch
	}
	return l.append(last, marker(l.end(), leader, pid, epoch, committed))
}

// begin makes an empty log go on at an offset: the one before it is taken by an end of nobody's transaction, which no consumer sees.
func (l *plog) begin(at int64) error {
	s := &segment{base: at - 1}
	l.segments = []*segment{s}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	return l.append(s, marker(at-1, 0, -1, -1, false))
}

func (l *plog) append(s *segment, whole []byte) error {
	b := parse(whole)
	b.at = size(l.file(s, ".dat"))
	s.batches = append(s.batches, b)
	if err := appendFile(l.file(s, ".dat"), whole); err != nil {
		return err
	}
	return appendFile(l.file(s, ".idx"), appendIndex(nil, b))
}

func appendFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// marker is the batch that ends a transaction.
func marker(at int64, leaderEpoch int32, pid int64, epoch int16, committed bool) []byte {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	if committed {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	end := kmsg.EndTxnMarker{}
	r := kmsg.Record{Key: key.AppendTo(nil), Value: end.AppendTo(nil)}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // itself is one byte
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		FirstOffset: at, PartitionLeaderEpoch: leaderEpoch, Magic: 2, Attributes: 0x30, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: pid, ProducerEpoch: epoch, FirstSequence: -1, NumRecords: 1, Records: r.AppendTo(nil),
	}
	whole := b.AppendTo(nil)
	b.Length = int32(len(whole) - lengthAt)
	whole = b.AppendTo(whole[:0])
	b.CRC = int32(crc32.Checksum(whole[21:], castagnoli))
	return b.AppendTo(whole[:0])
}
