package results

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shade fills the stretches of the phases that are not measured, and names all that have room.
type shade struct {
	phases   []Phase
	from, to float64
}

// Plot implements plot.Plotter.
func (s *shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, ph := range s.phases {
		from, to := max(s.from, seconds(ph.StartNs)), min(s.to, seconds(ph.StartNs+ph.DurationNs))
		if to <= from {
			continue
		}
		left, right := x(from), x(to)
		if ph.Name != "measure" {
			c.FillPolygon(inkPhase.color(), []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
		}
		style := p.Legend.TextStyle
		if style.Width(ph.Name)+8 < right-left {
			c.FillText(style, vg.Point{X: left + 5, Y: c.Max.Y - 20}, ph.Name)
		}
	}
}

// marks are the buckets that were sealed (short strokes at the bottom) and dropped (dashed lines, or strokes at the top
// when there are many).
type marks struct{ rec *Record }

// manyDrops are so many that lines would hide what is behind them.
const manyDrops = 60

// Plot implements plot.Plotter.
func (m *marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	drops, seals := m.times(p.X.Min, p.X.Max)
	for _, t := range drops {
		at := x(t)
		if len(drops) > manyDrops {
			c.StrokeLine2(dropStyle(false), at, c.Max.Y, at, c.Max.Y-7)
		} else {
			c.StrokeLine2(dropStyle(true), at, c.Min.Y, at, c.Max.Y)
		}
	}
	for _, t := range seals {
		at := x(t)
		c.StrokeLine2(sealStyle(), at, c.Min.Y, at, c.Min.Y+9)
	}
}

// times of drops and seals within a stretch; a seal is known to its interval.
func (m *marks) times(from, to float64) (drops, seals []float64) {
	for _, d := range m.rec.Drops {
		if t := seconds(d.TNs); t >= from && t <= to {
			drops = append(drops, t)
		}
	}
	for i, one := range m.rec.Intervals {
		t := seconds(one.TNs)
		if i > 0 {
			t = (t + seconds(m.rec.Intervals[i-1].TNs)) / 2
		}
		if one.Seals > 0 && t >= from && t <= to {
			seals = append(seals, t)
		}
	}
	return drops, seals
}

func dropStyle(dashed bool) draw.LineStyle {
	s := draw.LineStyle{Color: inkDrop.color(), Width: 1}
	if dashed {
		s.Dashes = []vg.Length{4, 3}
	}
	return s
}

func sealStyle() draw.LineStyle { return draw.LineStyle{Color: inkSeal.color(), Width: 1.2} }

// keys name the marks that there are.
func (m *marks) keys(from, to float64) (out []keyItem) {
	drops, seals := m.times(from, to)
	if len(drops) > 0 {
		out = append(out, keyItem{"bucket dropped", thumb{dropStyle(len(drops) <= manyDrops), true}})
	}
	if len(seals) > 0 {
		out = append(out, keyItem{"bucket sealed", thumb{sealStyle(), false}})
	}
	return out
}

// key names lines and marks in a row above the panel, where it hides nothing.
type key []keyItem

type keyItem struct {
	name  string
	thumb plot.Thumbnailer
}

// Plot implements plot.Plotter.
func (k key) Plot(c draw.Canvas, p *plot.Plot) {
	const sample, gap = 20, 18
	style := p.Legend.TextStyle
	x, y := c.Min.X, c.Max.Y+7
	for _, item := range k {
		box := draw.Crop(c, x-c.Min.X, x+sample-c.Max.X, y-c.Min.Y, y+9-c.Max.Y)
		item.thumb.Thumbnail(&box)
		c.FillText(style, vg.Point{X: x + sample + 5, Y: y}, item.name)
		x += sample + 5 + style.Width(item.name) + gap
	}
}

// thumb is the sample of an upright mark in the legend.
type thumb struct {
	style draw.LineStyle
	whole bool
}

// Thumbnail implements plot.Thumbnailer.
func (t thumb) Thumbnail(c *draw.Canvas) {
	at, top := (c.Min.X+c.Max.X)/2, c.Max.Y
	if !t.whole {
		top = (c.Min.Y + c.Max.Y) / 2
	}
	c.StrokeLine2(t.style, at, c.Min.Y, at, top)
}
