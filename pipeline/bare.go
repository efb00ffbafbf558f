package pipeline

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"joinbench/config"
	"joinbench/kafka"
	"joinbench/results"
)

// barePoint is where a bare consumer was at one moment: a line of what Bare writes.
type barePoint struct {
	At    int64 `json:"at"` // since 1970
	N     int64 `json:"n"`  // records so far
	Bytes int64 `json:"bytes"`
	CPU   int64 `json:"cpu"` // of all threads, since the process began
}

// bareEvery is how far points are apart at least.
const bareEvery = 2 * time.Millisecond

// Bare reads the B topic of a join from its beginning to its end, with the client that serve has, and does nothing with the
// records: the process that RunKafka starts beside serve, and what serve is held against. It writes how far it is as lines of JSON.
func Bare(ctx context.Context, j *config.Join, w io.Writer) error {
	o := KafkaOptions(j, nil)
	topic := j.B.Topic
	spans, err := kafka.Spans(ctx, o, topic)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	var last barePoint
	point := func() error {
		last.At = time.Now().UnixNano()
		if cpu, err := results.CPUTime(); err == nil {
			last.CPU = int64(cpu)
		}
		return enc.Encode(&last)
	}
	if err := point(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = kafka.Bare(ctx, o, topic, spans, func(records, bytes int64) {
		last.N, last.Bytes = records, bytes
		if time.Now().UnixNano()-last.At < int64(bareEvery) {
			return
		}
		if err := point(); err != nil {
			cancel(err) // nobody reads it any more
		}
	})
	if err != nil {
		return err
	}
	return point()
}
