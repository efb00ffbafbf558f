// Package near finds the name that somebody meant who mistyped one.
package near

import "strings"

// Word returns the candidate that word most likely stood for, "" if none is near. Among equally near ones
// those win that are not taken (a key that is already in the file was not mistyped).
func Word(word string, candidates []string, taken map[string]bool) string {
	const longest = 64
	if word == "" || len(word) > longest {
		return ""
	}
	norm := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, bestCost := "", 1<<30
	for _, c := range candidates {
		d := Distance(norm(word), norm(c))
		if d > max(1, len(c)/3) {
			continue
		}
		cost := 2 * d
		if taken[c] {
			cost++
		}
		if cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// Distance counts the letters to add, leave out, replace or swap with a neighbour to turn a into b.
func Distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
