package results

// armTable is the arms side by side.
func armTable(arms []Arm) (head []string, rows [][]string) {
	for i := range arms {
		a := &arms[i]
		tenth := func(v float64) string { return fixed(v, 1) }
		rows = append(rows, []string{a.Name, orDash(a.NsPerB, tenth), armRatio(a), orDash(a.NsPerA, func(v float64) string { return fixed(v, 0) }),
			orDash(a.RSSMaxBytes, Bytes), orDash(a.DiskMaxBytes, Bytes), orDash(a.LookupsPerProbe, plain), orDash(a.FPRatio, Percent),
			orDash(a.RestartNs, nanos), orDash(a.Lost, Count)})
	}
	return []string{"ARMS", "ns/B", "× first", "ns/A", "RSS", "disk", "lookups/B", "FP", "restart", "lost by kill -9"}, rows
}

// armRatio is the ratio to the first arm with the spread over the slices.
func armRatio(a *Arm) string {
	text := orDash(a.NsPerBRatio, func(v float64) string { return fixed(v, 2) })
	if a.NsPerBRatioLow != nil && a.NsPerBRatioHigh != nil && *a.NsPerBRatioLow < *a.NsPerBRatioHigh {
		text += " (" + fixed(*a.NsPerBRatioLow, 2) + "–" + fixed(*a.NsPerBRatioHigh, 2) + ")"
	}
	return text
}
