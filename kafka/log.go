package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logger hands the client's log lines on, a level lower than it gives them: what it warns of (a connection that broke, a
// leader that moved) it deals with itself, time and again, and what matters of that is said once by outages.
type logger struct{ log *slog.Logger }

func newLogger(l *slog.Logger) logger { return logger{l} }

// Level implements kgo.Logger.
func (l logger) Level() kgo.LogLevel {
	ctx := context.Background()
	switch {
	case l.log.Enabled(ctx, slog.LevelDebug):
		return kgo.LogLevelInfo // its debug level is every request
	case l.log.Enabled(ctx, slog.LevelInfo):
		return kgo.LogLevelWarn
	case l.log.Enabled(ctx, slog.LevelWarn):
		return kgo.LogLevelError
	}
	return kgo.LogLevelNone
}

// Log implements kgo.Logger.
func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	to := slog.LevelDebug
	switch level {
	case kgo.LogLevelError:
		to = slog.LevelWarn
	case kgo.LogLevelWarn:
		to = slog.LevelInfo
	}
	l.log.Log(context.Background(), to, "kafka client: "+msg, keyvals...)
}

// outages says once that a broker cannot be reached, and once that it is back. Any goroutine of the client.
type outages struct {
	log   *slog.Logger
	mu    sync.Mutex
	since map[string]time.Time // by address
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (o *outages) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, context.Canceled) { // a client that is being closed
		return
	}
	address := net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	o.mu.Lock()
	defer o.mu.Unlock()
	since, out := o.since[address]
	switch {
	case err != nil && !out:
		if o.since == nil {
			o.since = map[string]time.Time{}
		}
		o.since[address] = time.Now()
		o.log.Warn("kafka: broker cannot be reached, trying again until it can", "broker", address, "error", err)
	case err == nil && out:
		delete(o.since, address)
		o.log.Warn("kafka: broker is back", "broker", address, "after", time.Since(since).Round(time.Millisecond))
	}
}
