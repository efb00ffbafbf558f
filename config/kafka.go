package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The keys below kafka, and what only a join of Kafka topics asks for.

func tlsLeaves(prefix string, t *TLS) []leaf {
	return []leaf{
		enumLeaf(prefix+"enabled", &t.Enabled, "auto", "true", "false").leaf,
		optional(prefix+"ca", &t.CA),
		optional(prefix+"cert", &t.Cert),
		optional(prefix+"key", &t.Key),
		optional(prefix+"server_name", &t.ServerName),
		boolLeaf(prefix+"insecure_skip_verify", &t.InsecureSkipVerify),
	}
}

func saslLeaves(prefix string, s *SASL) []leaf {
	return []leaf{
		enumLeaf(prefix+"mechanism", &s.Mechanism, "none", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer").leaf,
		optional(prefix+"user", &s.User),
		secretLeaf(prefix+"password", &s.Password),
		optional(prefix+"password_file", &s.PasswordFile),
		optional(prefix+"password_env", &s.PasswordEnv),
		optional(prefix+"token_file", &s.TokenFile),
		optional(prefix+"token_env", &s.TokenEnv),
	}
}

// optional is a text that Print leaves out if it is empty.
func optional(key string, p *string) leaf {
	l := stringLeaf(key, p, false)
	get := l.get
	l.get = func() string {
		if *p == "" {
			return ""
		}
		return get()
	}
	return l
}

// checkKafka is about kafka.tls and kafka.sasl: what does not go together is refused in any command.
func (j *Join) checkKafka(b *binder) {
	t := &j.Kafka.TLS
	if t.Cert != "" && t.Key == "" {
		b.fault("kafka.tls.cert", fmt.Errorf("kafka.tls.cert: %s needs kafka.tls.key, the file of its private key", t.Cert))
	}
	if t.Key != "" && t.Cert == "" {
		b.fault("kafka.tls.key", fmt.Errorf("kafka.tls.key: %s needs kafka.tls.cert, the file of its certificate", t.Key))
	}
	if t.InsecureSkipVerify && (t.CA != "" || t.ServerName != "") {
		b.fault("kafka.tls.insecure_skip_verify", fmt.Errorf("kafka.tls.insecure_skip_verify: true takes any certificate, so kafka.tls.ca and "+
			"kafka.tls.server_name would mean nothing: leave out one or the other"))
	}
	j.checkSASL(b)
}

func (j *Join) checkSASL(b *binder) {
	s := &j.Kafka.SASL
	proofs := []struct {
		key   string
		value string
		token bool
	}{
		{"kafka.sasl.user", s.User, false}, {"kafka.sasl.password", s.Password, false}, {"kafka.sasl.password_file", s.PasswordFile, false},
		{"kafka.sasl.password_env", s.PasswordEnv, false}, {"kafka.sasl.token_file", s.TokenFile, true}, {"kafka.sasl.token_env", s.TokenEnv, true},
	}
	var given []string // what it proves itself with
	for _, p := range proofs {
		switch {
		case p.value == "":
		case s.Mechanism == "none":
			b.fault(p.key, fmt.Errorf("%s is set and kafka.sasl.mechanism is not: set it to plain, scram-sha-256, scram-sha-512 or oauthbearer", p.key))
		case p.token != (s.Mechanism == "oauthbearer"):
			b.fault(p.key, fmt.Errorf("%s does not go with kafka.sasl.mechanism: %s: %s", p.key, s.Mechanism, proofOf(s.Mechanism)))
		case p.key != "kafka.sasl.user":
			given = append(given, p.key)
		}
	}
	if s.Mechanism == "none" || len(b.faults) > 0 {
		return
	}
	if len(given) != 1 {
		b.fault("kafka.sasl.mechanism", fmt.Errorf("kafka.sasl.mechanism: %s needs one of %s, and there are %d",
			s.Mechanism, proofOf(s.Mechanism), len(given)))
	}
	if s.User == "" && s.Mechanism != "oauthbearer" {
		b.fault("kafka.sasl.mechanism", fmt.Errorf("kafka.sasl.mechanism: %s needs kafka.sasl.user", s.Mechanism))
	}
	if s.Password == secretText {
		b.fault("kafka.sasl.password", fmt.Errorf("kafka.sasl.password: %s is what is printed for a password: write the password, or password_file or password_env",
			secretText))
	}
}

func proofOf(mechanism string) string {
	if mechanism == "oauthbearer" {
		return "kafka.sasl.token_file, kafka.sasl.token_env"
	}
	return "kafka.sasl.password, kafka.sasl.password_file, kafka.sasl.password_env"
}

// ValidateServe is Validate, and what a join of Kafka topics needs besides: topics to read and to write that are not the same,
// brokers, and a delivery that can be kept. A join of files takes the same configuration without.
func (j *Join) ValidateServe() error {
	if err := j.Validate(); err != nil {
		return err
	}
	b := j.binder("")
	j.checkBrokers(b)
	j.checkTopics(b)
	if j.Delivery == "exactly-once" {
		j.checkExactlyOnce(b)
	}
	if j.Deleted == "dead" && j.Topics.Dead == "" {
		b.fault("a.deleted", fmt.Errorf("a.deleted: dead needs topics.dead, the name of the topic (or set a.deleted: emit or stop)"))
	}
	return asError(b.faults)
}

func (j *Join) checkBrokers(b *binder) {
	for _, broker := range j.Kafka.Brokers {
		if err := brokerShape(broker); err != nil {
			b.fault("kafka.brokers", fmt.Errorf("kafka.brokers: %w", err))
		}
	}
}

// brokerShape takes host, host:port, [v6]:port.
func brokerShape(broker string) error {
	if at := strings.Index(broker, "://"); at >= 0 {
		return fmt.Errorf("%q is a URL, and a broker is host:port (did you mean %q?)", broker, broker[at+3:])
	}
	if !strings.Contains(broker, ":") {
		return nil
	}
	host, port, err := net.SplitHostPort(broker)
	if n, numErr := strconv.Atoi(port); err != nil || host == "" || numErr != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q is not host:port (for example localhost:9092, [::1]:9092)", broker)
	}
	return nil
}

// topicUse is a topic and the key that names it.
type topicUse struct {
	key, name string
	needed    string // an example if it must be there
	reads     bool
	side      bool // a side topic: several of these may be one
}

func (j *Join) topicUses() []topicUse {
	uses := []topicUse{
		{key: "a.topic", name: j.A.Topic, needed: "topic: orders", reads: true}, {key: "b.topic", name: j.B.Topic, needed: "topic: payments", reads: true},
		{key: "output.topic", name: j.Output.Topic, needed: "output: {topic: joined}"},
		{key: "topics.late", name: j.Topics.Late, side: true}, {key: "topics.dead", name: j.Topics.Dead, side: true},
		{key: "topics.unmatched", name: j.Topics.Unmatched, side: true},
	}
	if j.KeepsChangelog() {
		uses = append(uses, topicUse{key: "kafka.group", name: j.ChangelogTopic()})
	}
	return uses
}

// checkTopics: a topic that is written is neither read nor written by another part, or the join would feed on itself.
func (j *Join) checkTopics(b *binder) {
	uses := j.topicUses()
	for i, u := range uses {
		if u.name == "" {
			if u.needed != "" {
				b.fault(u.key, fmt.Errorf("missing key %s%s (for example %s)", b.from.under, u.key, u.needed))
			}
			continue
		}
		if err := topicShape(u.name); err != nil {
			b.fault(u.key, fmt.Errorf("%s: %w", u.key, err))
			continue
		}
		for _, other := range uses[:i] {
			if other.name == u.name && !(u.side && other.side) {
				b.fault(u.key, fmt.Errorf("%s: %s is the topic of %s already: name another one", u.key, u.name, other.key))
				break
			}
		}
	}
	switch {
	case j.Unmatched == "topic" && j.Topics.Unmatched == "":
		b.fault("unmatched", fmt.Errorf("unmatched: topic needs topics.unmatched, the name of the topic (or set unmatched: drop)"))
	case j.Unmatched != "topic" && j.Topics.Unmatched != "" && j.Type == "inner":
		b.fault("topics.unmatched", fmt.Errorf("topics.unmatched: %s is written with unmatched: topic only, and unmatched is %s",
			j.Topics.Unmatched, j.Unmatched))
	case j.Topics.Unmatched != "" && j.Type != "inner":
		b.fault("topics.unmatched", fmt.Errorf("topics.unmatched: %s goes with type: inner: with type: %s events without a partner come out as results; "+
			"leave the key out", j.Topics.Unmatched, j.Type))
	}
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const longestTopic = 249

// topicShape is what Kafka says of names.
func topicShape(name string) error {
	switch {
	case slices.Contains([]string{".", ".."}, name), !topicName.MatchString(name):
		return fmt.Errorf("%q is not the name of a topic (letters, digits, dots, _ and -)", name)
	case len(name) > longestTopic:
		return fmt.Errorf("%q has %d characters, a topic's name has at most %d", name, len(name), longestTopic)
	}
	return nil
}

// checkExactlyOnce is rule 24.
func (j *Join) checkExactlyOnce(b *binder) {
	if !j.KeepsChangelog() {
		b.fault("kafka.changelog", fmt.Errorf("kafka.changelog: off does not go with delivery: exactly-once, since what a crash takes from the state "+
			"would be nowhere: set changelog: auto, or delivery: at-least-once"))
	}
	if j.Kafka.Isolation != "read_committed" {
		b.fault("kafka.isolation", fmt.Errorf("kafka.isolation: %s does not go with delivery: exactly-once, since records that were taken back would be joined: "+
			"set isolation: read_committed, or delivery: at-least-once", j.Kafka.Isolation))
	}
}
