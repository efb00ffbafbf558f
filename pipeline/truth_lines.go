package pipeline

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"joinbench/buckets"
	"joinbench/core"
	"joinbench/loadgen"
)

// lineKind is a kind of line in a file of pairs.
type lineKind uint8

const (
	linePair  lineKind = iota // B, A
	lineNullA                 // -, A
	lineNullB                 // B, -
	lineGroup                 // A, wanted << 32 | n; then n B, two a line
	lineKinds
)

// A line is two words, little endian: kind << 60 | flags << 56 | the first number in 56 bits with its sign, and the second
// number. The numbers are indexes, -1 where no record of the generator's is behind them.
const (
	lineBits     = 56
	flagComplete = 1 << 2 // of a group; the flags below are loadgen.Says
)

// resultLine is one line of a result, by indexes.
type resultLine struct {
	kind  lineKind
	says  loadgen.Says
	j, i  int64
	group loadgen.Group // of lineGroup; its B are reused
}

var errLines = errors.New("damaged lines: remove the directory to start anew")

// Results implements core.Sink.
func (s *truthSink) Results(out *core.Output) error {
	for x := range out.Matches {
		if err := s.match(&out.Matches[x]); err != nil {
			return err
		}
	}
	for x := range out.Groups {
		if err := s.groupOf(&out.Groups[x]); err != nil {
			return err
		}
	}
	for _, list := range [][][]byte{out.Early, out.UnmatchedA} {
		for _, entry := range list {
			if err := s.nullA(entry); err != nil {
				return err
			}
		}
	}
	for _, r := range out.UnmatchedB {
		if err := s.tell(resultLine{kind: lineNullB, j: s.askedBy(r)}); err != nil {
			return err
		}
	}
	for _, entry := range out.WaitedB {
		_, j, err := s.indexOf(entry)
		if err != nil {
			return err
		}
		if err := s.tell(resultLine{kind: lineNullB, j: j}); err != nil {
			return err
		}
	}
	return nil
}

// match takes a pair, and what comes before it or in its place.
func (s *truthSink) match(m *core.Match) error {
	side, waits, err := s.indexOf(m.Entry)
	if err != nil {
		return err
	}
	j, i := s.askedBy(m.Ref), waits
	if side == core.B { // an A asked
		j, i = i, j
	}
	if m.Kind&(core.NullFirst|core.NullOnly) != 0 {
		if err := s.tell(resultLine{kind: lineNullA, i: i}); err != nil || m.Kind&core.NullOnly != 0 {
			return err
		}
	}
	return s.tell(resultLine{kind: linePair, says: saysOf(m.Kind), j: j, i: i})
}

func saysOf(k core.MatchKind) (says loadgen.Says) {
	if k&core.Corrected != 0 {
		says |= loadgen.Corrects
	}
	if k&core.Tombstone != 0 {
		says |= loadgen.Retracts
	}
	return says
}

func (s *truthSink) groupOf(g *core.Group) error {
	_, i, err := s.indexOf(g.A)
	if err != nil {
		return err
	}
	if g.Kind&core.NullFirst != 0 {
		if err := s.tell(resultLine{kind: lineNullA, i: i}); err != nil {
			return err
		}
	}
	s.members = s.members[:0]
	for _, entry := range g.B {
		_, j, err := s.indexOf(entry)
		if err != nil {
			return err
		}
		s.members = append(s.members, j)
	}
	says := saysOf(g.Kind)
	return s.tell(resultLine{kind: lineGroup, says: says, i: i,
		group: loadgen.Group{A: i, B: s.members, Complete: g.Complete, Wanted: g.Wanted, Says: says}})
}

func (s *truthSink) nullA(entry []byte) error {
	_, i, err := s.indexOf(entry)
	if err != nil {
		return err
	}
	return s.tell(resultLine{kind: lineNullA, i: i})
}

// indexOf is the record of an entry, -1 where there is none of ours: the verifier calls it spurious.
func (s *truthSink) indexOf(entry []byte) (side core.Side, index int64, err error) {
	e, err := buckets.ParseEntry(entry)
	if err != nil {
		return 0, 0, err
	}
	if e.SideB {
		side = core.B
	}
	return side, s.index(side, e.Partition, e.Offset), nil
}

// askedBy is the record that asked.
func (s *truthSink) askedBy(r core.Ref) int64 {
	return s.index(r.Chunk.Side, r.Chunk.Partition, r.Chunk.Offset[r.Row])
}

func (s *truthSink) index(side core.Side, partition int32, offset int64) int64 {
	of := s.gen.IndexA
	if side == core.B {
		of = s.gen.IndexB
	}
	if index, ok := of(partition, offset); ok {
		return index
	}
	return -1
}

// pair takes a plain pair.
func (s *truthSink) pair(jb, ia int64) error { return s.tell(resultLine{kind: linePair, j: jb, i: ia}) }

// tell holds a line against the truth, and keeps it.
func (s *truthSink) tell(l resultLine) error {
	s.judge(&l)
	if s.w == nil {
		return nil
	}
	s.out = l.append(s.out[:0])
	_, err := s.w.Write(s.out)
	return err
}

// judge holds a line against the truth.
func (s *truthSink) judge(l *resultLine) {
	s.outputs++
	if l.says&loadgen.Retracts != 0 {
		s.outputs++ // the tombstone
	}
	if l.kind != linePair || s.skipped == nil || !s.skipped.excuses(l.j, l.i) {
		l.tell(s.verifier)
	}
}

// tell tells a verifier of the line.
func (l *resultLine) tell(v *loadgen.Verifier) {
	switch l.kind {
	case linePair:
		v.Pair(l.j, l.i, l.says)
	case lineNullA:
		v.NullA(l.i)
	case lineNullB:
		v.NullB(l.j)
	case lineGroup:
		v.Group(&l.group)
	}
}

// append writes the line's form.
func (l *resultLine) append(dst []byte) []byte {
	word := func(n uint64) { dst = binary.LittleEndian.AppendUint64(dst, n) }
	first, second, flags := l.j, uint64(l.i), uint64(l.says)
	if l.kind == lineGroup {
		first, second = l.i, uint64(l.group.Wanted)<<32|uint64(len(l.group.B))
		if l.group.Complete {
			flags |= flagComplete
		}
	}
	word(uint64(l.kind)<<60 | flags<<lineBits | uint64(first)&(1<<lineBits-1))
	word(second)
	if l.kind == lineGroup {
		for _, j := range l.group.B {
			word(uint64(j))
		}
		if len(l.group.B)%2 != 0 {
			word(0)
		}
	}
	return dst
}

// readLine reads the next line. io.EOF means that there is none; B of a group are put into members.
func readLine(in *bufio.Reader, members []int64) (l resultLine, _ []int64, err error) {
	var words [2]uint64
	if err := readWords(in, &words); err != nil {
		return l, members, err
	}
	l.kind = lineKind(words[0] >> 60)
	flags := words[0] >> lineBits & 0xf
	first := int64(words[0]<<(64-lineBits)) >> (64 - lineBits)
	if l.says = loadgen.Says(flags & (flagComplete - 1)); l.kind != lineGroup {
		if l.j, l.i = first, int64(words[1]); l.kind >= lineKinds {
			err = errLines
		}
		return l, members, err
	}
	members = members[:0]
	for left := uint32(words[1]); left > 0; left -= min(left, 2) {
		var pair [2]uint64
		if err := readWords(in, &pair); err != nil {
			return l, members, noEnd(err)
		}
		if members = append(members, int64(pair[0])); left > 1 {
			members = append(members, int64(pair[1]))
		}
	}
	l.i = first
	l.group = loadgen.Group{A: first, B: slices.Clip(members), Complete: flags&flagComplete != 0, Wanted: uint32(words[1] >> 32), Says: l.says}
	return l, members, nil
}

func readWords(in *bufio.Reader, words *[2]uint64) error {
	var text [pairBytes]byte
	if _, err := io.ReadFull(in, text[:]); err != nil {
		return err
	}
	words[0], words[1] = binary.LittleEndian.Uint64(text[:]), binary.LittleEndian.Uint64(text[8:])
	return nil
}

// noEnd says that the end of the file is in the middle of something.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
