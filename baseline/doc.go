// Package baseline has what people would use instead of this join, to be measured beside it: core.Joiner behind the same
// engine, so that gate, routing, order of commits, sink and books are the same, and only what holds the A differs.
//
//   - Memory is what people write first: a Go map from key to event, and a list for each bucket of time, by which events
//     expire. It holds whatever body it is given: with `store: full` the whole event, otherwise the projection.
//   - Null takes everything and joins nothing: what is left is the cost of the instrument.
//
// Nothing is kept on disk. When such a process is killed all that waits is lost, and a restart reads it all again.
//
// Memory is meant to be as good as such code gets without becoming another design. Measured with a million A of 1 KB and
// a million B, of which one in a hundred has its A (variants_test.go, 2 cores of an AMD EPYC, noisy; the lower of two):
//
//	map[string]*event       246 ns a B   1,152 bytes an A
//	map[string][]*event     262          1,205
//	map[string][]byte       272          1,149
//	map[string]event        320          1,182
//	one such map a bucket  4,414         (16 look-ups a B)
//
// So it is one map of pointers: a B costs one look-up, whatever the number of buckets. Events of one key are a list in the
// order in which rule 2 prefers them.
package baseline
