// Package broker is a small Kafka in one process: kfake, the broker that the author of franz-go wrote to test his client, with an
// address, a directory and an end.
//
// What it is for: trying joinbench without a cluster, and tests that kill the broker. So what it has answered must outlive its
// process. kfake writes each batch and each offset to its files as it comes, which is most of that, and leaves gaps:
//
//   - A transaction's end touches several files, one after another. Killed in between, a part of it had been committed.
//   - A transaction that was open is taken for aborted, but the log does not say so: after a second kill the producer's next
//     commit would have covered it as well.
//   - What retries of a producer are known by, and whether its last transaction was committed, is written at a clean end alone.
//   - A partition whose records have all been deleted starts again at offset 0; garbage behind a log cuts off what is written later.
//
// Two things close them. While the broker runs, intents.go writes down what kfake is about to do that it could leave half done. Before
// kfake opens a directory that was not closed, mend.go reads the logs and makes them whole: the transaction that was being
// committed is committed, all other open ones are aborted and their producers fenced, which is what a client also meets when a
// transaction runs into its timeout.
//
// It has one broker, keeps what it has read in RAM only while it answers, and makes no promise about power cuts: nothing is synced.
// Group members are forgotten by a kill and join again; an open transaction that holds offsets and no record is forgotten
// without a word; records that DeleteRecords took away may come back.
package broker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options say where a broker is and what it begins with.
type Options struct {
	Listen     string         // host:port; port 0 takes a free one
	Data       string         // the directory that keeps everything; "" keeps it in memory
	Partitions int            // of topics that are created without a number
	Topics     map[string]int // topics to begin with and their partitions; those that exist stay as they are
	Log        io.Writer      // warnings
}

// Broker is a broker that runs. Its methods may be called from any goroutine.
type Broker struct {
	cluster  *kfake.Cluster
	listener *listener
	mark     *os.File // nil in memory
}

// Open starts a broker. Whoever opened it closes it.
func Open(o Options) (_ *Broker, err error) {
	b := &Broker{}
	defer func() {
		if err != nil && b.mark != nil {
			_ = b.mark.Close()
		}
	}()
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.ListenFn(b.listen(o.Listen)), kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(o.Partitions), kfake.WithLogger(kfake.BasicLogger(o.Log, kfake.LogLevelWarn)),
		// Events to try things out with bear any time, and a week of retention goes by that.
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1"}),
	}
	if o.Data != "" {
		crashed, err := b.take(o.Data)
		if err != nil {
			return nil, err
		}
		if err := mend(o.Data, crashed); err != nil {
			return nil, fmt.Errorf("mending %s: %w", o.Data, err)
		}
		opts = append(opts, kfake.DataDir(o.Data))
	}
	if b.cluster, err = kfake.NewCluster(opts...); err != nil {
		return nil, err
	}
	if o.Data != "" {
		watch(b.cluster, o.Data)
	}
	if err := b.topics(o.Topics); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.listener.begin()
	return b, nil
}

// Addr is the host:port that clients are told.
func (b *Broker) Addr() string { return b.listener.name }

// Close ends the broker: it answers what it has begun, writes what it knows, and lets its directory go.
func (b *Broker) Close() error {
	b.cluster.Close()
	if b.mark == nil {
		return nil
	}
	return errors.Join(b.mark.Truncate(0), b.mark.Close())
}

// markFile is locked by the broker that has the directory open, and says so in words: what says them and is not locked was not closed.
const markFile = "joinbench-broker.open"

// take makes a directory this broker's own, and says whether the one before did not close it.
func (b *Broker) take(dir string) (crashed bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	if b.mark, err = os.OpenFile(filepath.Join(dir, markFile), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return false, err
	}
	if err := syscall.Flock(int(b.mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, fmt.Errorf("%s is in use by another broker", dir)
	}
	crashed = size(b.mark.Name()) > 0
	_, err = b.mark.WriteString("open\n")
	return crashed, err
}

// listen gives kfake the address it listens on; kfake's own can only be on loopback.
func (b *Broker) listen(address string) func(string, string) (net.Listener, error) {
	return func(network, _ string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		name, err := advertised(l.Addr())
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		begun := make(chan struct{})
		b.listener = &listener{l, name, begun, sync.OnceFunc(func() { close(begun) })}
		return b.listener, nil
	}
}

// advertised is what clients are told: a broker that listens everywhere is known by the machine's name.
func advertised(a net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// listener has the name that clients are told, and lets nobody in before it has begun: kfake would serve clients who were waiting
// before its intents are watched and its topics are there.
type listener struct {
	net.Listener
	name  string
	begun chan struct{}
	begin func()
}

func (l *listener) Accept() (net.Conn, error) {
	<-l.begun
	return l.Listener.Accept()
}

func (l *listener) Close() error {
	defer l.begin() // whoever is in Accept is told
	return l.Listener.Close()
}

func (l *listener) Addr() net.Addr  { return l }
func (l *listener) Network() string { return "tcp" }
func (l *listener) String() string  { return l.name }

// topics creates those that do not exist.
func (b *Broker) topics(want map[string]int) error {
	for name, partitions := range want {
		if b.cluster.TopicInfo(name) == nil {
			if err := b.cluster.CreateTopic(name, int32(partitions), nil); err != nil {
				return fmt.Errorf("topic %s: %w", name, err)
			}
		} else if have := len(b.cluster.PartitionInfos(name)); have != partitions {
			return fmt.Errorf("topic %s has %d partitions already, not %d", name, have, partitions)
		}
	}
	return nil
}
