package results

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrFormat is in the error of Render for a format that it does not know: a usage error, exit code 2.
var ErrFormat = errors.New("unsupported report format")

// laterFormats are the forms that joinbench is going to have, so that asking for one is not called a mistake.
var laterFormats = []string{"bmf", "gab", "openmetrics", "hdr"}

// Formats lists what Render can write.
func Formats() []string { return []string{"text", "json", "md", "csv", "bench", "svg", "html"} }

// FormatList is Formats as one text.
func FormatList() string { return strings.Join(Formats(), ", ") }

// TextOptions are the surroundings of a text report. Width 0 stands for 100 columns.
type TextOptions struct {
	Width int
	Color bool
}

// CheckFormat says whether Render knows format; callers ask before a long run, not after it. The error wraps ErrFormat.
func CheckFormat(format string) error {
	supported := strings.Join(Formats(), ", ")
	switch {
	case slices.Contains(Formats(), format):
		return nil
	case slices.Contains(laterFormats, format):
		return fmt.Errorf("%w: %q is not supported by this build yet (supported: %s)", ErrFormat, format, supported)
	}
	return fmt.Errorf("%w: %q is not known (supported: %s)", ErrFormat, format, supported)
}

// Render writes rec to w in one of Formats. With "json" rec is normalised as by Marshal; the others only read it.
func Render(w io.Writer, rec *Record, format string, opt TextOptions) error {
	return RenderAll(w, []*Record{rec}, format, opt)
}

// RenderAll writes several records, at least one: text, json and html one after another, md, csv and bench as one table. A
// picture shows one record, so svg takes no more.
func RenderAll(w io.Writer, recs []*Record, format string, opt TextOptions) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	switch format {
	case "md":
		return WriteMarkdown(w, recs...)
	case "csv":
		return WriteCSV(w, recs...)
	case "bench":
		return WriteBench(w, recs...)
	case "html":
		return WriteHTML(w, recs...)
	case "svg":
		if len(recs) != 1 {
			return fmt.Errorf("%w: svg draws one record, and got %d (html takes several)", ErrFormat, len(recs))
		}
		return WriteSVG(w, recs[0])
	}
	for i, rec := range recs {
		if err := renderOne(w, rec, format, opt, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func renderOne(w io.Writer, rec *Record, format string, opt TextOptions, more bool) error {
	if format == "json" {
		data, err := Marshal(rec)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	if more {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if opt.Width == 0 {
		opt.Width = 100
	}
	return WriteText(w, rec, opt.Width, opt.Color)
}
