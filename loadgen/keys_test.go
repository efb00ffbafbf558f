package loadgen

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestDigitWriters compares every writer with fmt, over all of 4 digits (where the
// divisions by multiplication could be off) and over random numbers.
func TestDigitWriters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 7))
	check := func(got []byte, format string, x uint64) {
		t.Helper()
		if want := fmt.Sprintf(format, x); string(got) != want {
			t.Fatalf("%d written as %q, want %q", x, got, want)
		}
	}
	b := make([]byte, 20)
	for x := range uint64(10_000) {
		putDec8(b, x*10_000+9_999-x)
		check(b[:8], "%08d", x*10_000+9_999-x)
		binary.LittleEndian.PutUint32(b, dec4(x))
		check(b[:4], "%04d", x)
	}
	for n := range 20_000 {
		x := rnd.Uint64() >> (n % 64)
		if n < 64 {
			x = math.MaxUint64 >> n
		}
		putHex(b, x)
		check(b[:16], "%016x", x)
		putDec20(b, x)
		check(b[:20], "%020d", x)
		putDec13(b, x%1e13)
		check(b[:13], "%013d", x%1e13)
		putDec12(b, x%1e12)
		check(b[:12], "%012d", x%1e12)
		putPrice(b, x%(1<<24))
		if want := fmt.Sprintf("%.2f", float64(10_000+x%(1<<24)*90_000>>24)/100); string(b[:6]) != want {
			t.Fatalf("price %q, want %q", b[:6], want)
		}
	}
	u := make([]byte, 36)
	putUUID(u, 0x0123456789abcdef, 0xfedcba9876543210)
	if string(u) != "01234567-89ab-cdef-fedc-ba9876543210" {
		t.Errorf("uuid %s", u)
	}
}
