package buckets

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
)

// EntryVersion is the format of entries in arena, journal and SST:
//
//	0   u8   version (1)
//	1   u8   flags (bit 0: side B, bit 1: wanted is there)
//	2   u16  spec version, little endian like all that follow
//	4   u32  source partition
//	8   i64  event time, ms
//	16  i64  source offset
//	24  uvarint length of the key bytes, key bytes
//	…   u32 wanted, with flag bit 1 alone
//	…   body, to the end
const EntryVersion = 1

const (
	entryHeader  = 24
	flagSideB    = 1 << 0
	flagWanted   = 1 << 1
	maxEntrySize = 1 << 30
)

// ErrEntry is wrapped by every error about bytes that are no entry.
var ErrEntry = errors.New("not an entry")

// Entry is one waiting event, decoded. Key and Body point into the bytes it was parsed from.
type Entry struct {
	SideB     bool
	Spec      uint16
	Partition int32
	Time      int64 // ms
	Offset    int64
	Key       []byte // type-tagged join key: the check
	Body      []byte // what the output needs
	Wanted    uint32 // how many B complete the group of an A (rule 19); 0: no number was given
}

// Size is the number of bytes that AppendTo adds.
func (e *Entry) Size() int {
	n := entryHeader + uvarintLen(uint64(len(e.Key))) + len(e.Key) + len(e.Body)
	if e.Wanted != 0 {
		n += 4
	}
	return n
}

// AppendTo appends the entry in format version 1.
func (e *Entry) AppendTo(dst []byte) []byte {
	var flags byte
	if e.SideB {
		flags |= flagSideB
	}
	if e.Wanted != 0 {
		flags |= flagWanted
	}
	dst = append(dst, EntryVersion, flags)
	dst = binary.LittleEndian.AppendUint16(dst, e.Spec)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Partition))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Time))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Offset))
	dst = binary.AppendUvarint(dst, uint64(len(e.Key)))
	dst = append(dst, e.Key...)
	if e.Wanted != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, e.Wanted)
	}
	return append(dst, e.Body...)
}

// ParseEntry reads an entry; its slices point into b. Errors wrap ErrEntry.
func ParseEntry(b []byte) (Entry, error) {
	if len(b) <= entryHeader {
		return Entry{}, fmt.Errorf("%w: %d bytes", ErrEntry, len(b))
	}
	if b[0] != EntryVersion {
		return Entry{}, fmt.Errorf("%w: version %d, this build reads %d", ErrEntry, b[0], EntryVersion)
	}
	n, w := binary.Uvarint(b[entryHeader:])
	if w <= 0 || n > uint64(len(b)-entryHeader-w) {
		return Entry{}, fmt.Errorf("%w: key length past the end", ErrEntry)
	}
	at := entryHeader + w
	end := at + int(n)
	var wanted uint32
	body := b[end:]
	if b[1]&flagWanted != 0 {
		if len(body) < 4 {
			return Entry{}, fmt.Errorf("%w: %d bytes after the key, and a count should be there", ErrEntry, len(body))
		}
		wanted, body = binary.LittleEndian.Uint32(body), body[4:]
	}
	return Entry{
		SideB:     b[1]&flagSideB != 0,
		Spec:      binary.LittleEndian.Uint16(b[2:]),
		Partition: int32(binary.LittleEndian.Uint32(b[4:])),
		Time:      int64(binary.LittleEndian.Uint64(b[8:])),
		Offset:    int64(binary.LittleEndian.Uint64(b[16:])),
		Key:       b[at:end],
		Body:      body,
		Wanted:    wanted,
	}, nil
}

// EntryBefore orders entries of one key as rule 2 prefers them: event time, then partition, then offset.
func EntryBefore(a, b []byte) bool { return compareEntries(a, b) < 0 }

func compareEntries(a, b []byte) int {
	if x, y := entryTime(a), entryTime(b); x != y {
		return cmp.Compare(x, y)
	}
	if x, y := binary.LittleEndian.Uint32(a[4:]), binary.LittleEndian.Uint32(b[4:]); x != y {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(binary.LittleEndian.Uint64(a[16:]), binary.LittleEndian.Uint64(b[16:]))
}

// TimeOf is the event time of an entry, in ms.
func TimeOf(entry []byte) int64 { return entryTime(entry) }

func entryTime(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b[8:])) }

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
