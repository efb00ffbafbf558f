package results

import "unicode/utf8"

// armTable is the arms side by side.
func armTable(arms []Arm) (head []string, rows [][]string) {
	for i := range arms {
		a := &arms[i]
		tenth := func(v float64) string { return fixed(v, 1) }
		rows = append(rows, []string{a.Name, orDash(a.NsPerB, tenth), armRatio(a), orDash(a.NsPerA, tenth), orDash(a.RSSMaxBytes, Bytes),
			orDash(a.DiskMaxBytes, Bytes), orDash(a.LookupsPerProbe, plain), orDash(a.FPRatio, Percent), orDash(a.RestartNs, nanos),
			orDash(a.Lost, Count)})
	}
	return []string{"ARMS", "ns per B", "× first (slices)", "ns per A", "RSS", "disk", "lookups/B", "FP of B", "restart", "lost at kill -9"}, rows
}

// armRatio is the ratio to the first arm with the spread over the slices.
func armRatio(a *Arm) string {
	three := func(v float64) string { return significant(v, 3) }
	text := orDash(a.NsPerBRatio, three)
	if a.NsPerBRatioLow != nil && a.NsPerBRatioHigh != nil && *a.NsPerBRatioLow < *a.NsPerBRatioHigh {
		text += " (" + three(*a.NsPerBRatioLow) + "–" + three(*a.NsPerBRatioHigh) + ")"
	}
	return text
}

// wideTable is a table of which the columns that do not fit go on below, under the same labels.
func (p *page) wideTable(head []string, rows [][]string) {
	for from := 1; from < len(head); {
		used, to := 2+labelWidth, from
		for ; to < len(head); to++ {
			w := utf8.RuneCountInString(head[to])
			for _, row := range rows {
				w = max(w, utf8.RuneCountInString(row[to]))
			}
			if used += 2 + w; used > p.width && to > from {
				break
			}
		}
		part := [][]string{}
		for _, row := range rows {
			part = append(part, append([]string{row[0]}, row[from:to]...))
		}
		p.table(append([]string{head[0]}, head[from:to]...), part)
		from = to
	}
}
