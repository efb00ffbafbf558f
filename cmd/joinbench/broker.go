package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/broker"
)

const brokerLong = `broker is a small Kafka in one process, for trying things out and for tests: one broker, on loopback unless told otherwise.
It speaks to any Kafka client, knows consumer groups and transactions, and begins with the topics that you name; others
are created when a client asks for them.

Without --data everything is in memory and ends with it. With --data all that it has answered outlives kill -9: records,
topics, offsets of groups. A transaction that was open then is aborted, as if it had run into its timeout. It makes no
promise about power cuts, and is no measure of Kafka's speed: for that run Apache Kafka (scripts/kafka.sh start).

The address is printed on standard output once it can be used. SIGINT or SIGTERM ends it, with exit code 0.`

const brokerExample = `  joinbench broker --topic orders --topic payments=8          # in memory, at 127.0.0.1:9092
  joinbench broker --data ./kafka --listen 127.0.0.1:19092    # keeps what it was given
  joinbench broker --listen 127.0.0.1:0                       # any free port; the first line says which`

func newBroker(s streams) *cobra.Command {
	o := broker.Options{Log: s.err}
	var topics []string
	cmd := &cobra.Command{
		Use: "broker", Short: "Run a small Kafka, to try things out", Long: brokerLong, Example: brokerExample, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Topics, err = topicFlags(topics, o.Partitions); err != nil {
				return &usageError{err}
			}
			b, err := broker.Open(o)
			if err != nil {
				return fmt.Errorf("broker: %w", brokerHint(err))
			}
			defer func() {
				if e := b.Close(); err == nil {
					err = e
				}
			}()
			if _, err := fmt.Fprintln(s.out, b.Addr()); err != nil {
				return err
			}
			greet(s.err, b.Addr(), o)
			<-cmd.Context().Done()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:9092", "the address to listen on; with host 0.0.0.0 clients are told the machine's name")
	f.StringVar(&o.Data, "data", "", "the directory that keeps everything (default: memory)")
	f.IntVar(&o.Partitions, "partitions", 4, "partitions of topics that do not say how many")
	f.StringArrayVar(&topics, "topic", nil, "a topic to begin with, `name` or name=partitions; may be repeated")
	return cmd
}

// topicFlags reads name and name=partitions.
func topicFlags(flags []string, partitions int) (map[string]int, error) {
	if partitions < 1 {
		return nil, fmt.Errorf("--partitions %d: a topic has at least one", partitions)
	}
	topics := map[string]int{}
	for _, f := range flags {
		name, number, has := strings.Cut(f, "=")
		n := partitions
		if has {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 1 {
				return nil, fmt.Errorf("--topic %s: the number of partitions is %q, and must be 1 or more", f, number)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("--topic %s: the topic's name is missing", f)
		}
		topics[name] = n
	}
	return topics, nil
}

// brokerHint says what to do about errors that have a remedy.
func brokerHint(err error) error {
	if strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%w: another broker may run there; choose another address with --listen", err)
	}
	return err
}

// greet tells people what they have and what they could do next.
func greet(w io.Writer, addr string, o broker.Options) {
	where := "in memory: it is gone when this ends (--data DIR keeps it)"
	if o.Data != "" {
		where = "kept in " + o.Data
	}
	topic := "orders"
	names := slices.Sorted(maps.Keys(o.Topics))
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, o.Topics[name])
		if i == 0 {
			topic = name
		}
	}
	if len(names) == 0 {
		names = []string{"none yet"}
	}
	_, _ = fmt.Fprintf(w, `joinbench broker: a small Kafka at %[1]s, %[2]s
topics (partitions): %[3]s
try, in another terminal:
  echo '{"ref":"p1","t":1}' | kcat -P -b %[1]s -t %[4]s
  kcat -C -e -b %[1]s -t %[4]s
  joinbench serve -c join.yaml      # with kafka: {brokers: ["%[1]s"]}
^C ends it
`, addr, where, strings.Join(names, ", "), topic)
}
