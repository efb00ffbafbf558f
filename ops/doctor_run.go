package ops

import (
	"context"
	"fmt"
	"strings"

	"joinbench/results"
)

// transactions holds our timeout against what the brokers allow.
func (x *examining) transactions() {
	if x.j.Delivery != exactlyOnce {
		return
	}
	const name = "transactions"
	most := x.cluster.TransactionMax
	switch {
	case most == 0:
		x.ok(name, "transaction.max.timeout.ms may not be read by this user")
	case most < x.TransactionTimeout:
		x.bad(name, "transaction.max.timeout.ms is "+span(most), "the join asks for "+span(x.TransactionTimeout)+": raise it on the brokers")
	default:
		x.ok(name, "transaction.max.timeout.ms is "+span(most)+"; whether this user may write with a transactional id cannot be asked without taking it over")
	}
}

// group looks at the consumer group: who is in it, and where it stands.
func (x *examining) group(ctx context.Context) {
	id := x.j.Kafka.Group
	name := "group " + id
	g, err := x.in.Group(ctx, id, x.j.A.Topic, x.j.B.Topic)
	if err != nil {
		x.bad(name, err.Error(), askAdvice(err))
		return
	}
	if !allows(g.Allowed, "READ") {
		x.bad(name, "we may "+strings.Join(g.Allowed, ", "), "joining the group is a right that is missing: kafka-acls --add --operation READ --group "+id)
		return
	}
	value := strings.ToLower(g.State)
	if g.State == "Dead" {
		value = "new: both topics are read from their beginning"
	}
	if len(g.Members) > 0 {
		value += ", " + count(len(g.Members), "member") + " (" + strings.Join(g.Members, ", ") + ")"
	}
	var lost, behind int64
	committed := 0
	for topic, parts := range g.Committed {
		t := x.topics[topic]
		if t == nil || t.Spans == nil {
			continue
		}
		for p, c := range parts {
			if int(p) >= len(t.Spans) {
				continue
			}
			committed++
			has := t.Spans[p]
			lost += max(0, has.Start-c.Offset)
			behind += max(0, has.End-max(c.Offset, has.Start))
		}
	}
	if committed > 0 {
		value += fmt.Sprintf(", %s offsets behind", results.Count(behind))
	}
	switch {
	case lost > 0:
		x.bad(name, fmt.Sprintf("%s; %s offsets that it has not read are deleted already", value, results.Count(lost)),
			"what retention took cannot be joined any more (serve goes on at the log's start and reports data_loss): raise retention.ms, and see why it fell behind")
	case len(g.Members) > 0:
		x.warn(name, value, "somebody is in it: a join that runs already is well, else use another kafka.group")
	default:
		x.ok(name, value)
	}
}

const (
	// rowBytes is what a waiting event takes beside key and body: hash, time, partition, offset, lengths, its part of index and filter.
	rowBytes = 48
	// copies is how often a row lies on the disk for a while: in the log, in its bucket, and as both while that is being sealed.
	copies = 2
)

// stateSpace estimates the disk that the window will need.
func (x *examining) stateSpace() {
	const name = "state space"
	dir := x.j.State.Dir
	free, known := x.free(dir)
	if !known {
		x.ok(name, "not shown by this system")
		return
	}
	need, said := 0.0, []string{}
	for i := range x.inputs {
		in := &x.inputs[i]
		waits := i == 0 || x.j.Probe == "wait" || x.j.Collect.Mode != "eager"
		if !waits || in.trial == nil || in.rate == 0 {
			continue
		}
		each := float64(in.trial.Bytes)/float64(in.trial.Records) + rowBytes
		rows := in.rate * x.reach().Seconds()
		need += rows * each * copies
		said = append(said, fmt.Sprintf("%s events of %s for %s", approx(rows), in.conf.Topic, span(x.reach())))
	}
	if need == 0 {
		x.ok(name, results.Bytes(free)+" free in "+dir+"; too few records to say what the window needs")
		return
	}
	value := fmt.Sprintf("%s free in %s; at the rate of now the window holds %s, at the most about %s on the disk", results.Bytes(free), dir,
		strings.Join(said, " and "), results.Bytes(int64(need)))
	advice := "a larger disk for state.dir, a shorter window, or less in keep"
	switch {
	case need > float64(free):
		x.bad(name, value, advice)
	case 2*need > float64(free):
		x.warn(name, value, advice)
	default:
		x.ok(name, value)
	}
}
