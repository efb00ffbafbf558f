// Package loadgen makes the two streams of the benchmark, orders (side A) and
// payments (side B), and knows the truth about them.
//
// What comes in is a [Config]. What goes out, for any index and in any order,
// is record i of A or record j of B, and the answer to "which A does B j pair
// with?". Nothing is stored: a record is a pure function of (configuration,
// index), so that several goroutines may each make a part of a stream, a run
// may be resumed in its middle, and the truth about ten million B costs no
// memory.
//
// How the pieces fit:
//
//  1. Time. Record i of A has the base time epoch + i/rateA, record j of B
//     the base time epoch + (Pending + j·rateA/rateB)/rateA, in integers, so both
//     are monotone. In-time records lie up to Disorder before their base time;
//     late ones lie more than Grace behind a record that precedes them in
//     their own partition (rule 8).
//  2. Shares ([strata]). An index space is cut into blocks, one record of each
//     block is chosen by hash; what is left is numbered again and cut again for
//     the next share. Shares are therefore exact (not binomial), disjoint, and
//     can be inverted: the k-th chosen record is computed, not searched.
//  3. Pairs ([pairing]). The k-th matched B slot and the A stride that is one
//     match age before it belong together. Slots and strides have the same
//     rate in event time, so this is a shift, plus a permutation inside
//     chunks that makes ages vary. Both directions are computed.
//  4. Keys. A 64-bit bijection of the index, printed. A indexes and the indexes
//     of B without partner enter it from disjoint ranges, so no two keys are
//     equal by accident.
//     With Zipf the latter share few keys, some of them hot (zipf.go).
//  5. Decoys. A B without partner is mostly one with a key of its own. Some carry
//     the key of an A that a wrong join would give them: a key that was consumed
//     (Duplicates), an A whose window is over (Expired), an A in the window
//     while the B itself is late, an A that was late. See [Kind].
//  6. Steady. A stream may begin in its middle: the A that would have been joined before the first B are left out, so that
//     from the first B on as many A wait as ever (steady.go).
//  7. Records are templates with the varying digits written over: JSON of
//     exactly RecordBytes bytes.
//
// The verifier ([Verifier]) takes the pairs that a join made and says what is
// missing, spurious or duplicated.
//
// Ownership: the Append methods append to the caller's slice and keep nothing.
// Goroutines: a [Gen] is immutable and may be used by all; a [Verifier] belongs
// to one.
package loadgen
