package results

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"reflect"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The picture's size in points.
const (
	chartWidth  = 900
	chartHeight = 520
)

// inks are the picture's colours on a light page and on a dark one. The style sheet in the picture swaps them: it finds
// them by the very text that the drawing library writes, so each must differ from all others.
type ink struct{ light, dark string }

var (
	inkPaper    = ink{"#FFFFFF", "#0D1117"}
	inkText     = ink{"#24292F", "#C9D1D9"}
	inkGrid     = ink{"#E6E8EB", "#21262D"}
	inkPhase    = ink{"#F3F5F8", "#161B22"} // every phase but measure
	inkDrop     = ink{"#C9653B", "#E08A5F"}
	inkSeal     = ink{"#7A8793", "#8B98A5"}
	inkRate     = ink{"#1F6FB5", "#58A6FF"}
	inkBatch    = ink{"#8A4FA8", "#BC8CFF"}
	inkPerB     = ink{"#2E8B57", "#3FB970"}
	inkResponse = ink{"#B58900", "#E3B341"}
	allInks     = []ink{inkPaper, inkText, inkGrid, inkPhase, inkDrop, inkSeal, inkRate, inkBatch, inkPerB, inkResponse}
)

func (i ink) color() color.Color {
	var c color.NRGBA
	_, _ = fmt.Sscanf(i.light, "#%02X%02X%02X", &c.R, &c.G, &c.B)
	c.A = 0xff
	return c
}

// series is one line of a panel, over seconds.
type series struct {
	name   string
	ink    ink
	points plotter.XYs
}

// panel is one of the picture's two plots.
type panel struct {
	axis   string
	series []series
}

// WriteSVG draws rate and latency over the time of a run, with the buckets that were sealed and dropped marked and the phases
// shaded. The file needs nothing besides itself, and follows the reader's choice of a light or a dark page. A record with
// fewer than two intervals is refused: there is nothing to draw.
func WriteSVG(w io.Writer, rec *Record) error {
	if len(rec.Intervals) < 2 {
		return fmt.Errorf("run %s has %d intervals, and a picture needs two: it was too short", rec.Run.ID, len(rec.Intervals))
	}
	svg, err := drawChart(rec)
	if err != nil {
		return err
	}
	_, err = w.Write(svg)
	return err
}

func drawChart(rec *Record) ([]byte, error) {
	canvas := vgsvg.New(chartWidth, chartHeight)
	all := draw.New(canvas)
	all.SetColor(inkPaper.color())
	all.Fill(all.Rectangle.Path())
	from, to := timeSpan(rec)
	var plots [][]*plot.Plot
	for i, one := range []panel{ratePanel(rec), latencyPanel(rec)} {
		p, err := one.plot(rec, from, to, i == 0)
		if err != nil {
			return nil, err
		}
		if i == 1 {
			p.X.Label.Text = "seconds since the start of the run"
		}
		plots = append(plots, []*plot.Plot{p})
	}
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadTop: 8, PadBottom: 6, PadLeft: 8, PadRight: 14, PadY: 10}
	cells := plot.Align(plots, tiles, all)
	for i := range plots {
		plots[i][0].Draw(cells[i][0])
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("draw run %s: %w", rec.Run.ID, err)
	}
	return dress(out.Bytes(), rec), nil
}

// dress adds what the drawing library cannot: a title for those who cannot see it, and the colours of a dark page.
func dress(svg []byte, rec *Record) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<title>%s</title>\n<style>text{font-family:system-ui,sans-serif !important}\n@media (prefers-color-scheme:dark){\n",
		escapeXML("joinbench: rate and latency over time, "+runTitle(rec)))
	for _, i := range allInks {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "[style*=\"%s:%s\"]{%s:%s !important}\n", property, i.light, property, i.dark)
		}
	}
	b.WriteString("}</style>\n")
	head := bytes.IndexByte(svg[bytes.Index(svg, []byte("<svg")):], '>') + bytes.Index(svg, []byte("<svg")) + 1
	return bytes.Join([][]byte{svg[:head], []byte("\n" + b.String()), svg[head:]}, nil)
}

func escapeXML(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\x00", "").Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, text))
}

const perSecond = 1e9

func seconds(ns int64) float64 { return float64(ns) / perSecond }

// timeSpan is the stretch that is drawn: from the last second before measuring to the end, or the whole run if nothing was
// measured. The preparation is another matter, often longer, and would leave little room.
func timeSpan(rec *Record) (from, to float64) {
	to = seconds(rec.Intervals[len(rec.Intervals)-1].TNs)
	for _, p := range rec.Phases {
		if p.Name == "measure" {
			end := seconds(p.StartNs + p.DurationNs)
			return max(0, seconds(p.StartNs)-(end-seconds(p.StartNs))/12), max(end, min(to, end+(end-seconds(p.StartNs))/20))
		}
	}
	return seconds(rec.Intervals[0].TNs), to
}

// line gathers one number of the intervals, where it is known.
func line(rec *Record, name string, scale float64) plotter.XYs {
	f := jsonField(reflect.TypeFor[Interval](), name)
	if f == nil {
		return nil
	}
	var out plotter.XYs
	for i := range rec.Intervals {
		one := &rec.Intervals[i]
		if v, ok := number(reflect.ValueOf(one).Elem().FieldByIndex(f.Index)); ok && v > 0 {
			out = append(out, plotter.XY{X: seconds(one.TNs), Y: v * scale})
		}
	}
	return out
}

func ratePanel(rec *Record) panel {
	points := line(rec, "probes_per_s", 1)
	scale, name := 1.0, "B per second"
	switch top := highest(points); {
	case top >= 1e6:
		scale, name = 1e-6, "million B per second"
	case top >= 1e3:
		scale, name = 1e-3, "thousand B per second"
	}
	for i := range points {
		points[i].Y *= scale
	}
	return panel{name, []series{{"B per second", inkRate, points}}}
}

func highest(points plotter.XYs) float64 {
	top := 0.0
	for _, p := range points {
		top = max(top, p.Y)
	}
	return top
}

// latencyPanel shows what there is: the response of an open loop and the time of a batch, or else what a B costs.
func latencyPanel(rec *Record) panel {
	p := panel{axis: "milliseconds"}
	for _, s := range []series{
		{"response, p99", inkResponse, line(rec, "response_p99_ns", 1e-6)},
		{"batch, p99", inkBatch, line(rec, "batch_p99_ns", 1e-6)},
	} {
		if len(s.points) > 1 {
			p.series = append(p.series, s)
		}
	}
	if len(p.series) > 0 {
		return p
	}
	name, perB := "time per B, join alone", line(rec, "ns_per_b", 1)
	if len(perB) == 0 { // records of version 1.1
		name, perB = "time per B, decoding included", line(rec, "probes_per_s", 1)
		for i := range perB {
			perB[i].Y = 1e9 / perB[i].Y
		}
	}
	return panel{"nanoseconds", []series{{name, inkPerB, perB}}}
}

// plot lays out one panel. The key of the first names the marks too.
func (one panel) plot(rec *Record, from, to float64, first bool) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = nil
	style(p)
	p.Y.Label.Text = one.axis
	p.Add(&shade{rec.Phases, from, to})
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = inkGrid.color(), inkGrid.color()
	p.Add(grid)
	top := 0.0
	var keys key
	marks := &marks{rec: rec}
	p.Add(marks)
	for _, s := range one.series {
		s.points = within(s.points, from, to)
		top = max(top, highest(s.points))
		if len(s.points) == 0 {
			continue
		}
		l, err := plotter.NewLine(s.points)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", s.name, err)
		}
		l.Color, l.Width = s.ink.color(), 1.6
		p.Add(l)
		keys = append(keys, keyItem{s.name, l})
	}
	if first {
		keys = append(keys, marks.keys(from, to)...)
	}
	p.Add(keys)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = from, to, 0, top*1.15
	if top == 0 {
		p.Y.Max = 1
	}
	return p, nil
}

func within(points plotter.XYs, from, to float64) plotter.XYs {
	var out plotter.XYs
	for _, p := range points {
		if p.X >= from && p.X <= to && !math.IsNaN(p.Y) {
			out = append(out, p)
		}
	}
	return out
}

// style sets fonts and colours.
func style(p *plot.Plot) {
	sans := func(size font.Length) font.Font {
		return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	}
	text := inkText.color()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Label.TextStyle.Color, a.Tick.Label.Color, a.Tick.Color = text, text, text, text
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(12), sans(11)
		a.LineStyle.Color = text
		a.Tick.LineStyle.Color = text
		a.Padding = vg.Length(0)
	}
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sans(11), text
	p.Title.Text, p.Title.TextStyle.Font, p.Title.Padding = " ", sans(11), 4 // room for the key
}
