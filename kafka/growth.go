package kafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// growth is how much larger records are here than on their way: brokers count compressed bytes, and rows that compress twentyfold
// would fill twenty times the memory.
type growth struct {
	most        int32 // bytes that an answer may have here
	sent, plain atomic.Int64
	factor      int64 // by which less is asked for; the polling goroutine's
}

// firstFactor stands until something came: what does not compress is asked for in small pieces once.
const firstFactor = 8

func newGrowth(most int32) *growth { return &growth{most: most, factor: firstFactor} }

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (g *growth) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	g.sent.Add(int64(m.CompressedBytes))
	g.plain.Add(int64(m.UncompressedBytes))
}

// measure looks at what came since it last did, and says whether other limits hold from now on.
func (g *growth) measure() (changed bool) {
	if g.sent.Load() == 0 {
		return false
	}
	sent, plain := g.sent.Swap(0), g.plain.Swap(0)
	factor := max(1, (plain+sent-1)/sent)
	if factor < g.factor { // less at once, more by and by: batches of one topic compress well, of the other do not
		factor = max(factor, g.factor/2)
	}
	changed = factor != g.factor
	g.factor = factor
	return changed
}

// limits are what brokers are asked for: of all partitions, and of one.
func (g *growth) limits() (total, part int32) {
	total = max(int32(int64(g.most)/g.factor), leastAsked)
	return total, max(total/partitionShare, leastAsked)
}
