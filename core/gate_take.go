package core

// take admits records of one partition that will wait, while they need not be held back (rule 13).
func (g *Gate) take(b *batch, s Side, i, max int) error {
	p := &g.parts[s][i]
	limit := g.spreadLimit(s)
	for b.n < max {
		if err := g.settle(b, s, i, max); err != nil || !p.settled {
			return err
		}
		t := p.headTime()
		if t > limit {
			g.stop(p, HoldSpread, t-g.cfg.MaxSpread)
			return nil
		}
		behind := g.behind(s, t)
		if behind && g.over(s, t) {
			g.reject(b, p, LateIdle)
			continue
		}
		c, row := p.chunk, uint32(p.at)
		if c.Fate[row] == NullKey {
			b.nulls = append(b.nulls, Reject{Ref{c, row}, NullKey, p.m})
			g.pass(b, p, NullKey)
			continue
		}
		switch g.enter(s, c, row, t) {
		case mustWait:
			g.stop(p, HoldRing, 0)
			return nil
		case isOver:
			if g.cfg.Probe == ProbeWait { // it may still find who waits for it
				c.flag(row, over)
				b.admit(s, c, row)
			} else {
				b.closed = append(b.closed, Ref{c, row})
			}
		case entered:
			b.admit(s, c, row)
		}
		if behind {
			b.behind[s]++
		}
		g.pass(b, p, Accepted)
	}
	return nil
}

// spreadLimit is the latest time that an event of a side may have while the other side has data to read: max_spread after
// its next event.
func (g *Gate) spreadLimit(s Side) int64 {
	next, other := int64(maxTime), 1-s
	for i := range g.parts[other] {
		if p := &g.parts[other][i]; p.settled {
			next = min(next, p.headTime())
		}
	}
	return next + g.cfg.MaxSpread
}

// takeB admits B records of one partition that ask and do not wait, when they are due: aligned, every A that could match them
// has come, or A is idle as a whole (rules 8 and 12); immediate, they may only not run ahead of A by more than max_spread (rule 13).
func (g *Gate) takeB(b *batch, i, max int) error {
	p := &g.parts[B][i]
	due := g.wm[A] - g.cfg.Before - g.cfg.Grace
	switch {
	case g.cfg.Probe == ProbeImmediate:
		due = g.spreadLimit(B) + 1
	case g.idle[A]:
		due = maxTime
	}
	for b.n < max {
		if err := g.settle(b, B, i, max); err != nil || !p.settled {
			return err
		}
		if t := p.headTime(); t >= due {
			if g.cfg.Probe == ProbeImmediate {
				g.stop(p, HoldSpread, t-g.cfg.MaxSpread)
			} else {
				g.stop(p, HoldAligned, t+g.cfg.Before+g.cfg.Grace)
			}
			return nil
		}
		most := max - b.n
		if p.m < g.wm[B] { // it woke, or is at its first: each may be behind
			most = 1
			if t := p.headTime(); g.over(B, t) {
				g.reject(b, p, LateIdle)
				continue
			} else if g.behind(B, t) && p.chunk.Fate[p.at] != NullKey {
				b.behind[B]++
			}
		}
		c, row := p.chunk, uint32(p.at)
		if c.Fate[row] == NullKey {
			b.nulls = append(b.nulls, Reject{Ref{c, row}, NullKey, p.m})
			g.pass(b, p, NullKey)
			continue
		}
		g.takeRun(b, p, due, most)
	}
	return nil
}

// takeRun admits B records of one chunk from its head on, which is settled and due, up to the first that needs a closer
// look: nearly always the whole chunk, in a few nanoseconds each (one by one it was 40).
func (g *Gate) takeRun(b *batch, p *gatePart, due int64, most int) {
	c := p.chunk
	fates, times, offsets := c.Fate[:c.N], c.Time[:c.N], c.Offset[:c.N]
	from, end := p.at, min(c.N, p.at+most)
	rows := rowsFor(&b.rows[B], c)
	next, m, at := p.next, p.m, from
	for ; at < end; at++ {
		t := times[at]
		if fates[at] != Accepted || offsets[at] < next || t+g.cfg.Grace < m || t >= due {
			break // the head is none of these: this ends
		}
		rows = append(rows, uint32(at))
		next, m = offsets[at]+1, max(m, t)
	}
	b.rows[B][len(b.rows[B])-1].rows = rows
	b.read[B][Accepted] += uint64(at - from)
	b.n += at - from
	p.next, p.m, p.at, p.place, p.settled = next, m, at, c.Place[at], false
	if at == c.N {
		b.done = append(b.done, c)
		p.chunk = nil
	}
}
