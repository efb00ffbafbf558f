package results

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var htmlText string

var htmlPage = template.Must(template.New("report").Parse(htmlText))

// htmlRecord is what the page shows of one record.
type htmlRecord struct {
	*Record
	Status, Title string
	Reasons       []string // of the verdict, without those that the list of thresholds shows
	Class         string   // of the verdict
	Chart         template.HTML
	Arms          [][]string
	ArmHead       []string
	Text          string
}

// WriteHTML writes one page that needs nothing besides itself: verdicts, the table of figures with a column for each record, and
// of each record the picture, its arms and the whole text report. The records are only read.
func WriteHTML(w io.Writer, recs ...*Record) error {
	page := struct {
		Title   string
		Heads   []string
		Figures [][]string
		Records []htmlRecord
	}{Title: "joinbench"}
	for _, rec := range recs {
		page.Heads = append(page.Heads, shortTitle(rec))
		one, err := htmlOf(rec)
		if err != nil {
			return err
		}
		page.Records = append(page.Records, one)
	}
	if len(recs) == 1 {
		page.Title += ": " + shortTitle(recs[0])
	}
	for _, f := range figures(recs) {
		row := []string{f.name}
		for _, rec := range recs {
			row = append(row, f.text(rec))
		}
		page.Figures = append(page.Figures, row)
	}
	return htmlPage.Execute(w, page)
}

func htmlOf(rec *Record) (htmlRecord, error) {
	h := htmlRecord{Record: rec, Status: statusName(&rec.Verdict), Title: runTitle(rec), Class: "bad",
		Reasons: otherReasons(rec)}
	switch rec.Verdict.Status {
	case StatusOK:
		h.Class = "good"
	case StatusInvalid, StatusInconclusive, StatusInterrupted, "":
		h.Class = "doubt"
	}
	if len(rec.Arms) > 0 {
		h.ArmHead, h.Arms = armTable(rec.Arms)
	}
	if len(rec.Intervals) > 1 {
		svg, err := drawChart(rec)
		if err != nil {
			return h, err
		}
		_, picture, _ := strings.Cut(string(svg), "<svg") // without the XML declaration
		h.Chart = template.HTML("<svg" + picture)         // ours: drawChart escapes what comes from the record
	}
	var text strings.Builder
	if err := WriteText(&text, rec, 100, false); err != nil {
		return h, err
	}
	h.Text = text.String()
	return h, nil
}

// Shown is the value of a threshold, or why there is none.
func (t Threshold) Shown() string { return t.shown() }
