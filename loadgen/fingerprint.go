package loadgen

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Fingerprint names the workload: 32 hex digits of a hash over the configuration and a
// sample of the records and of the truth. Two runs with the same fingerprint had the same
// input, but for where it was cut; a change of the generator changes it even if the
// configuration is the same.
func (g *Gen) Fingerprint() string {
	if g.finite != nil {
		return g.finite.Fingerprint()
	}
	h := sha256.New()
	fmt.Fprintf(h, "joinbench/loadgen %s\n", g.cfg.text())
	var buf []byte
	sample(g.nA, func(i int64) {
		buf = g.AppendA(g.AppendAKey(buf[:0], i), i)
		j, ok := g.PartnerOf(i)
		writeRecord(h, buf, i, j, ok)
	})
	sample(g.nB, func(j int64) {
		buf = g.AppendB(g.AppendBKey(buf[:0], j), j)
		i, ok := g.Expected(j)
		writeRecord(h, buf, j, i, ok)
	})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// text is the type's fields, in their order, without the family where there is none: workloads have the names that they had
// before there were families.
func (c Config) text() string {
	text := fmt.Sprintf("%+v", c)
	if c.Family == (Family{}) {
		text = strings.TrimSuffix(text, fmt.Sprintf(" Family:%+v}", Family{})) + "}"
	}
	return text
}

func writeRecord(w io.Writer, text []byte, index, partner int64, ok bool) {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(index))
	if ok {
		binary.LittleEndian.PutUint64(b[8:], uint64(partner))
		b[16] = 1
	}
	w.Write(b[:]) // a hash never fails
	w.Write(text)
}

// sample visits the first 256 of n indexes, 768 hashed ones and the last.
func sample(n int64, visit func(int64)) {
	for i := range min(n, 256) {
		visit(i)
	}
	if n <= 256 {
		return
	}
	for s := range uint64(768) {
		visit(int64(below(mix(s+1), uint64(n))))
	}
	visit(n - 1)
}
