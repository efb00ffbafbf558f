//go:build !race

package fusefilter

const raceEnabled = false
