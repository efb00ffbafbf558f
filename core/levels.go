package core

// Counters sums everything up, earlier lives of the state included.
func (e *Engine) Counters() Counters {
	c := e.base
	for s := range c.Fates {
		for f := range c.Fates[s] {
			c.Fates[s][f] += e.now.Fates[s][f]
		}
		c.Behind[s] += e.now.Behind[s]
	}
	c.Matches += e.now.Matches
	c.UnmatchedA += e.now.UnmatchedA
	c.UnmatchedB += e.now.UnmatchedB
	c.Early += e.now.Early
	c.Corrected += e.now.Corrected
	c.Retracted += e.now.Retracted
	for _, j := range e.joiners {
		c.Tasks.add(j.Stats())
	}
	return c
}

// Levels are what is there now, over all joiners.
type Levels struct {
	Pending      int // A that wait
	PendingB     int // B that wait (ProbeWait)
	Open, Sealed int // buckets, of the joiner that has most
	SealedRows   int // rows in families, used ones too
	Unfiltered   int // sealed buckets that are asked without the filter they are to have, over all joiners
	Rotating     int // joiners that seal or spill a bucket, or have asked for what will find its rows faster
	FilterBytes  int
	IndexBytes   int
	ArenaBytes   int64
	StoreBytes   int64 // RocksDB's own memory
	DiskBytes    int64
	Watermarks   [2]int64
	Batch        uint64
}

// Levels takes the cheap ones, and with deep those that ask RocksDB and the file system.
func (e *Engine) Levels(deep bool) Levels {
	l := Levels{Watermarks: e.gate.wm, Batch: e.batch}
	for _, j := range e.joiners {
		l.add(j.Levels(deep))
	}
	return l
}

func (l *Levels) add(o Levels) {
	l.Open, l.Sealed = max(l.Open, o.Open), max(l.Sealed, o.Sealed)
	l.Pending += o.Pending
	l.PendingB += o.PendingB
	l.SealedRows += o.SealedRows
	l.Unfiltered += o.Unfiltered
	l.Rotating += o.Rotating
	l.FilterBytes += o.FilterBytes
	l.IndexBytes += o.IndexBytes
	l.ArenaBytes += o.ArenaBytes
	l.StoreBytes += o.StoreBytes
	l.DiskBytes += o.DiskBytes
}

// Drops lists the removals of buckets, joiner by joiner, in the order in which they ended.
func (e *Engine) Drops() []Drop {
	var all []Drop
	for _, j := range e.joiners {
		all = append(all, j.Drops()...)
	}
	return all
}
