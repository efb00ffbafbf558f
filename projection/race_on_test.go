//go:build race

package projection

// raceEnabled: under the race detector sync.Pool drops what it is given now and then, so allocations cannot be counted.
const raceEnabled = true
