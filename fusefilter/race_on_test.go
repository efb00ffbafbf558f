//go:build race

package fusefilter

// raceEnabled: the race detector makes these loops 10 to 30 times as slow.
const raceEnabled = true
