// Package ops is what somebody who runs the join sees of it.
//
// Before it runs: Examination looks at Kafka as the join would (topics, partitions, who chose them, retention against the window,
// rights, clocks) and says what would go wrong and what to change. It writes nothing and joins nothing.
//
// Who owns what: an Examination owns its connections and closes them; it belongs to one goroutine.
package ops
