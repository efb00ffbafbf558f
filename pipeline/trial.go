package pipeline

import (
	"fmt"

	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// Trial is what became of records that were decoded as a join would.
type Trial struct {
	Records int
	Fates   map[string]int // by the names of the counters
	Bytes   int64          // keys and bodies that the state would keep
}

// Try decodes sampled records of a side ("a" or "b") as `serve` would, and keeps nothing of them.
func Try(j *config.Join, side string, recs []projection.Record) (*Trial, error) {
	c, err := compile(j, false)
	if err != nil {
		return nil, err
	}
	of := core.A
	switch side {
	case "a":
	case "b":
		of = core.B
	default:
		return nil, fmt.Errorf("side %q", side)
	}
	d := c.spec[of].NewDecoder()
	t := &Trial{Records: len(recs), Fates: map[string]int{}}
	var rows projection.Rows
	for i := range recs {
		rows.Reset()
		d.Append(&rows, &recs[i])
		t.Fates[rows.Fate[0].String()]++
		t.Bytes += int64(len(rows.Keys) + len(rows.Body))
	}
	return t, nil
}
