package pipeline

import (
	"log/slog"
	"time"
)

// A transaction ends when its time is over, which brokers look for every ten seconds unless told otherwise
// (transaction.abort.timed.out.transaction.cleanup.interval.ms), or it hangs; abortLooks is two such looks. sayOpenEvery is how often a
// wait is logged.
const (
	abortLooks   = 20 * time.Second
	sayOpenEvery = 10 * time.Second
)

// openWait tells of waiting for the end of a transaction.
type openWait struct {
	log         *slog.Logger
	usual       time.Duration // for which a transaction may be open that was begun with our settings
	since, said time.Time
}

// waits is called again and again. Apache Kafka can lose the end of a transaction: while its log loads after a broker was killed, partitions
// without a leader are taken for deleted ones and get no marker ("likely deleted already"), though the coordinator notes that it has ended.
// Nobody will ever end it then but somebody who says so; this process does not, for it cannot see whether its other partitions
// were committed.
func (w *openWait) waits(open int64) {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	if now.Sub(w.said) < sayOpenEvery {
		return
	}
	w.said = now
	if long := now.Sub(w.since); long > w.usual {
		w.log.Error("a transaction that is open in the changelog does not end: a broker may have lost its end (Kafka's log then says of partitions that they are likely deleted already). "+
			"If `kafka-transactions.sh list` shows none that is ongoing, `kafka-transactions.sh abort --topic TOPIC --partition PARTITION --start-offset OFFSET` ends it, "+
			"here and in the topics of the results", "offset", open, "waited", long.Round(time.Second))
		return
	}
	w.log.Warn("a transaction of somebody else is open in the changelog: waiting for its end", "offset", open)
}
