package core

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"joinbench/buckets"
)

// fuzzedLog is the changelog of a small join that collects B, and so has two rings.
func fuzzedLog(t testing.TB) (*Config, *script, *ledger) {
	cfg := fuzzConfig()
	cfg.Cardinality, cfg.Collect, cfg.WantA = OneToMany, CollectCount, true
	src := fuzzScript(t)
	for i := range src.parts[A] {
		for k := range src.parts[A][i].events {
			src.parts[A][i].events[k].wanted = 2
		}
	}
	l := newLedger(t)
	l.e = open(t, cfg, memStores(1), src, l)
	must(t, l.e.Run(context.Background()))
	must(t, l.e.Close())
	return cfg, src, l
}

// FuzzApply: any bytes as a journal record are refused, and then nothing of them is left, or taken over; what follows, and a run from
// there, end without a panic, as does a start on what was written.
func FuzzApply(f *testing.F) {
	cfg, src, l := fuzzedLog(f)
	for i, s := range l.log {
		for _, c := range s.changes {
			f.Add(byte(i), c.Space, c.Journal)
			f.Add(byte(i+1), c.Space, c.Journal)
			f.Add(byte(i), c.Space^'c', c.Journal)
			f.Add(byte(i), c.Space, c.Journal[:len(c.Journal)-1])
			for at := 0; at < len(c.Journal); at += 1 + len(c.Journal)/10 {
				damaged := bytes.Clone(c.Journal)
				damaged[at] ^= 1
				f.Add(byte(i), c.Space, damaged)
			}
		}
	}
	f.Fuzz(func(t *testing.T, at byte, space byte, journal []byte) {
		n := int(at) % len(l.log)
		stores := memStores(1)
		e := open(t, cfg, stores, src.again(), &echo{})
		for _, s := range l.log[:n] {
			must(t, e.Apply(s.n, s.changes, s.record))
		}
		before := rowsOfRings(t, e.rings[0])
		err := e.Apply(l.log[n].n, []Change{{Space: space, Journal: journal}}, l.log[n].record)
		if err != nil {
			if !errors.Is(err, buckets.ErrJournal) {
				t.Fatalf("error %v does not wrap ErrJournal", err)
			}
			sameList(t, "rows after the error", rowsOfRings(t, e.rings[0]), before)
			must(t, e.Apply(l.log[n].n, l.log[n].changes, l.log[n].record))
		}
		for _, s := range l.log[n+1:] {
			if later := e.Apply(s.n, s.changes, s.record); later != nil && err == nil {
				break // what came first was of another batch
			} else if later != nil {
				t.Fatal(later)
			}
		}
		if runErr := e.Run(context.Background()); runErr != nil && err != nil {
			t.Fatal(runErr)
		}
		must(t, e.Close())
		e, openErr := tryOpen(cfg, stores, src.again(), &echo{})
		must(t, openErr)
		must(t, e.Close())
	})
}
