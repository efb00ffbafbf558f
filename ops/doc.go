// Package ops is what somebody who runs the join sees of it.
//
// Before it runs: an Examination looks at Kafka as the join would (topics, partitions, who chose them, retention against the window,
// rights, clocks) and says what would go wrong and what to change. It writes nothing and joins no group.
//
// While it runs: a Server answers /metrics (Prometheus), /status (JSON), /healthz and /readyz. What it shows is a Status, which whoever
// runs the join makes when asked: nothing here reaches into the join.
//
// Who owns what: an Examination owns its connections and closes them, and belongs to one goroutine. A Server owns its listener and
// its goroutines; Close ends them. A Status is nobody's once it was given away: it is only read.
package ops
