//go:build !race

package buckets

const raceEnabled = false
