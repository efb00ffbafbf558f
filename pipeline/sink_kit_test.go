package pipeline

import (
	"bytes"
	"strings"
	"testing"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// sinkKit is a file sink over buffers, of a configuration, and what makes the events of its outputs: hand-made ones, so that
// a test says what core would have found.
type sinkKit struct {
	t    testing.TB
	c    *compiled
	sink *fileSink
	out  [4]bytes.Buffer
}

// newSinkKit takes a configuration over sides that are keyed by $.k, timed by $.t, and keep $.n and $.s.
func newSinkKit(t testing.TB, yaml string, unmatchedFile bool) *sinkKit {
	t.Helper()
	c, err := compileText(yaml)
	if err != nil {
		t.Fatal(err)
	}
	k := &sinkKit{t: t, c: c}
	k.sink = plainSink(c, [2]string{"left", "right"})
	for i := range k.sink.files {
		if i != toUnmatched || unmatchedFile {
			k.sink.files[i].w = capture.NewWriter(&k.out[i], "a buffer")
		}
	}
	return k
}

const sinkSides = `a: {key: $.k, time: $.t, keep: [$.n, {as: $.s}]}
b: {key: $.k, time: $.t, keep: [$.n, {bs: $.s}]}
window: {after: 1h}
`

// compileText reads a join.yaml without its sides, unless it brings its own, and compiles it.
func compileText(yaml string) (*compiled, error) {
	if !strings.HasPrefix(yaml, "a: ") {
		yaml = sinkSides + yaml
	}
	j, err := config.Parse([]byte(yaml), "join.yaml")
	if err == nil {
		err = j.Validate()
	}
	if err != nil {
		return nil, err
	}
	return compile(j, true)
}

// refs decodes records into one chunk.
func (k *sinkKit) refs(side core.Side, values ...string) (refs []core.Ref) {
	k.t.Helper()
	c := &feedChunk{part: &feedPart{Partition: core.Partition{ID: 3}, side: side}}
	c.rows.Reset()
	dec := k.c.spec[side].NewDecoder()
	for i, v := range values {
		rec := projection.Record{Value: []byte(v), Partition: 3, Offset: int64(i)}
		c.raw.recs = append(c.raw.recs, rec)
		dec.Append(&c.rows, &rec)
	}
	for i, f := range c.rows.Fate {
		c.Fate = append(c.Fate, core.Fate(f))
		c.Offset = append(c.Offset, int64(i))
		refs = append(refs, core.Ref{Chunk: &c.Chunk, Row: uint32(i)})
	}
	c.share()
	return refs
}

func (k *sinkKit) ref(side core.Side, value string) core.Ref {
	k.t.Helper()
	return k.refs(side, value)[0]
}

// entry is an event as the state keeps it.
func (k *sinkKit) entry(side core.Side, value string) []byte {
	k.t.Helper()
	r := k.ref(side, value)
	e := buckets.Entry{SideB: side == core.B, Partition: 3, Time: r.Chunk.Time[r.Row], Offset: 5, Key: r.Chunk.Key(r.Row), Body: r.Chunk.BodyOf(r.Row)}
	return e.AppendTo(nil)
}

func (k *sinkKit) entries(side core.Side, values ...string) (list [][]byte) {
	k.t.Helper()
	for _, v := range values {
		list = append(list, k.entry(side, v))
	}
	return list
}

// print hands an output over and gives what the results and the unmatched file have got by it, and how many results were counted.
func (k *sinkKit) print(out *core.Output) (results, unmatched string, counted uint64) {
	k.t.Helper()
	before := k.sink.outputs
	if err := k.sink.Results(out); err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.sink.State(nil); err != nil { // flushes
		k.t.Fatal(err)
	}
	results, unmatched = k.out[toResults].String(), k.out[toUnmatched].String()
	k.out[toResults].Reset()
	k.out[toUnmatched].Reset()
	return results, unmatched, k.sink.outputs - before
}
