package buckets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A journal record, format version 2, is what one batch did to one ring of a task:
//
//	u8 version (2)
//	sections, each: u8 kind, i64 epoch, u32 count (not 0), and
//	  kind 1, appended: u32 first row, count × (u64 hash, u32 length, entry), rows ascending from the first on
//	  kind 2, used:     count × u32 row
//	  kind 3, ended:    count × u32 row
//
// A bucket's appends come before its other sections, since a row is there before it is used. The first row says whether all
// that came before is there: a record is also read far from its ring (Ring.Apply). Version 1 did not have it.
const (
	journalVersion  = 2
	sectionAppended = 1
	sectionUsed     = 2
	sectionEnded    = 3
	sectionHeader   = 13
)

// ErrJournal is wrapped by every error about bytes that are no journal record.
var ErrJournal = errors.New("damaged journal record")

// appendSections adds what the batch did to one bucket.
func appendSections(dst []byte, b *Bucket) []byte {
	if len(dst) == 0 {
		dst = append(dst, journalVersion)
	}
	if n := b.arena.rows() - b.mark.rows; b.state == Open && n > 0 {
		dst = appendSectionHeader(dst, sectionAppended, b.Epoch, n)
		dst = binary.LittleEndian.AppendUint32(dst, b.base+uint32(b.mark.rows))
		for row := b.mark.rows; row < b.arena.rows(); row++ {
			dst = binary.LittleEndian.AppendUint64(dst, b.arena.hashes[row])
			dst = append(dst, b.arena.sized(uint32(row))...)
		}
	}
	dst = appendRows(dst, sectionUsed, b.Epoch, b.log)
	return appendRows(dst, sectionEnded, b.Epoch, b.endLog)
}

// appendRows adds a section of row numbers, none if there are no rows.
func appendRows(dst []byte, kind byte, epoch int64, rows []uint32) []byte {
	if len(rows) == 0 {
		return dst
	}
	dst = appendSectionHeader(dst, kind, epoch, len(rows))
	for _, row := range rows {
		dst = binary.LittleEndian.AppendUint32(dst, row)
	}
	return dst
}

func appendSectionHeader(dst []byte, kind byte, epoch int64, n int) []byte {
	dst = append(dst, kind)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(epoch))
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// journalVisitor gets the content of a record in order.
type journalVisitor interface {
	// appends says that n rows of a bucket follow, from a row on; with skip they are only looked at.
	appends(epoch int64, first uint32, n int) (skip bool, err error)
	appended(hash uint64, entry []byte)
	used(epoch int64, row uint32) error
	ended(epoch int64, row uint32) error
}

// readJournal walks a record; errors wrap ErrJournal.
func readJournal(rec []byte, v journalVisitor) error {
	if len(rec) == 0 || rec[0] != journalVersion {
		return fmt.Errorf("%w: version", ErrJournal)
	}
	for rec = rec[1:]; len(rec) > 0; {
		if len(rec) < sectionHeader {
			return fmt.Errorf("%w: section header cut short", ErrJournal)
		}
		kind, epoch := rec[0], int64(binary.LittleEndian.Uint64(rec[1:]))
		n := int(binary.LittleEndian.Uint32(rec[9:]))
		if n == 0 {
			return fmt.Errorf("%w: an empty section", ErrJournal)
		}
		var err error
		switch rec = rec[sectionHeader:]; kind {
		case sectionAppended:
			rec, err = readAppended(rec, epoch, n, v)
		case sectionUsed:
			rec, err = readRows(rec, epoch, n, v.used)
		case sectionEnded:
			rec, err = readRows(rec, epoch, n, v.ended)
		default:
			err = fmt.Errorf("%w: section kind %d", ErrJournal, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readAppended(rec []byte, epoch int64, n int, v journalVisitor) ([]byte, error) {
	if len(rec) < 4 {
		return nil, fmt.Errorf("%w: first row cut short", ErrJournal)
	}
	first := binary.LittleEndian.Uint32(rec)
	if int64(first)+int64(n) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: %d rows from %d on", ErrJournal, n, first)
	}
	skip, err := v.appends(epoch, first, n)
	if err != nil {
		return nil, err
	}
	for rec = rec[4:]; n > 0; n-- {
		if len(rec) < 12 {
			return nil, fmt.Errorf("%w: row cut short", ErrJournal)
		}
		hash, size := binary.LittleEndian.Uint64(rec), int(binary.LittleEndian.Uint32(rec[8:]))
		if size > len(rec)-12 {
			return nil, fmt.Errorf("%w: entry past the end", ErrJournal)
		}
		entry := rec[12 : 12+size]
		if _, err := ParseEntry(entry); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrJournal, err)
		}
		if !skip {
			v.appended(hash, entry)
		}
		rec = rec[12+size:]
	}
	return rec, nil
}

func readRows(rec []byte, epoch int64, n int, visit func(epoch int64, row uint32) error) ([]byte, error) {
	if n > len(rec)/4 {
		return nil, fmt.Errorf("%w: rows past the end", ErrJournal)
	}
	for range n {
		if err := visit(epoch, binary.LittleEndian.Uint32(rec)); err != nil {
			return nil, err
		}
		rec = rec[4:]
	}
	return rec, nil
}
