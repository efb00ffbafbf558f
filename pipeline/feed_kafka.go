package pipeline

import (
	"context"

	"joinbench/core"
	"joinbench/kafka"
)

// kafkaInput is where the partitions of a join are read: places are offsets.
type kafkaInput struct {
	consumer *kafka.Consumer
	topics   [2]string
	parts    [2][]core.Partition
	// ends are the offsets at which partitions end, by side and number; nil: they go on.
	ends [2]map[int32]int64
	// fresh says that nothing of these topics was ever committed: then what a partition no longer has from its beginning is
	// not lost, for it was not there when the join was set up.
	fresh bool
}

// open implements openLive.
func (k *kafkaInput) open(side core.Side, part int, place int64) (liveReader, error) {
	id := k.parts[side][part].ID
	end := kafka.NoEnd
	if k.ends[side] != nil {
		end = k.ends[side][id]
	}
	if k.fresh && place == 0 {
		place = kafka.Earliest
	}
	r, err := k.consumer.Open(context.Background(), k.topics[side], id, place, end) // each question of it has a time limit
	if err != nil {
		return nil, err
	}
	return kafkaReader{r}, nil
}

// kafkaReader is the consumer's as a liveReader.
type kafkaReader struct{ *kafka.Reader }

func (r kafkaReader) placeAfter(i int) int64 { return r.PlaceAfter(i) }
