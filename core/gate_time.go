package core

// updateWatermark: the least watermark of the side's partitions; one that has ended is left out, and a side of
// which all have ended is over. A side without partitions has said nothing yet, unless that is its end.
func (g *Gate) updateWatermark(s Side) {
	wm, known := int64(maxTime), g.cfg.Drain
	for i := range g.parts[s] {
		p := &g.parts[s][i]
		if p.Timeless {
			continue
		}
		known = true
		if !p.ended || !g.cfg.Drain {
			wm = min(wm, p.watermark())
		}
	}
	if known {
		g.wm[s] = max(g.wm[s], wm) // watermarks never go back
	}
}

