package config

import (
	"bytes"
	"strings"
	"testing"
)

// served is what a join of topics needs at least.
const served = `a: {topic: orders, key: $.ref}
b: {topic: payments, key: "@key"}
window: {after: 4h}
`

// What goes into the same key twice would be refused, so cases stand in the key kafka or beside it.
func TestKafkaMessages(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"kafka: {sasl: {mechanism: plain, user: u, password: p}}", ""},
		{"kafka: {sasl: {mechanism: scram-sha-256, user: u, password_file: /p}}", ""},
		{"kafka: {sasl: {mechanism: scram-sha-512, user: u, password_env: P}}", ""},
		{"kafka: {sasl: {mechanism: oauthbearer, token_file: /t}}", ""},
		{"kafka: {sasl: {mechanism: oauthbearer, token_env: T}}", ""},
		{"kafka: {tls: {enabled: true}}", ""},
		{"kafka: {tls: {ca: x}, changelog: off}", ""},
		{"delivery: exactly-once", ""},
		{"delivery: exactly-once\nkafka: {changelog: on}", ""},
		{"kafka: {brokers: ['h', 'h:1', '[::1]:9092']}", ""},
		{"topics: {late: side, dead: side}", ""},
		{"unmatched: topic\ntopics: {unmatched: u}", ""},

		{"kafka: {sasl: {mechanism: scram, user: u, password: p}}", `kafka.sasl.mechanism: unknown value "scram" (allowed: none, plain, scram-sha-256, scram-sha-512, oauthbearer`},
		{"kafka: {sasl: {mechanism: plian}}", `did you mean "plain"?`},
		{"kafka: {sasl: {user: u, password: p}}", `kafka.sasl.user is set and kafka.sasl.mechanism is not: set it to plain`},
		{"kafka: {sasl: {mechanism: plain, user: u}}", `kafka.sasl.mechanism: plain needs one of kafka.sasl.password, kafka.sasl.password_file, kafka.sasl.password_env, and there are 0`},
		{"kafka: {sasl: {mechanism: plain, user: u, password: p, password_file: f}}", `and there are 2`},
		{"kafka: {sasl: {mechanism: plain, password: p}}", `kafka.sasl.mechanism: plain needs kafka.sasl.user`},
		{"kafka: {sasl: {mechanism: oauthbearer, user: u, token_file: f}}", `kafka.sasl.user does not go with kafka.sasl.mechanism: oauthbearer: kafka.sasl.token_file, kafka.sasl.token_env`},
		{"kafka: {sasl: {mechanism: plain, user: u, token_file: f}}", `kafka.sasl.token_file does not go with kafka.sasl.mechanism: plain`},
		{"kafka: {sasl: {mechanism: oauthbearer}}", `oauthbearer needs one of kafka.sasl.token_file, kafka.sasl.token_env, and there are 0`},
		{"kafka: {sasl: {mechanism: plain, user: u, password: '***'}}", `*** is what is printed for a password`},
		{"kafka: {tls: {cert: c}}", `kafka.tls.cert: c needs kafka.tls.key`},
		{"kafka: {tls: {key: k}}", `kafka.tls.key: k needs kafka.tls.cert`},
		{"kafka: {tls: {insecure_skip_verify: true}}", ""},
		{"kafka: {tls: {insecure_skip_verify: true, ca: k}}", `kafka.tls.insecure_skip_verify: true takes any certificate`},
		{"kafka: {tls: {cafile: k}}", `unknown key "kafka.tls.cafile"`},
		{"kafka: {tls: {enabled: yes}}", `kafka.tls.enabled: unknown value "yes" (allowed: auto, true, false`},
		{"kafka: {changelog: offf}", `kafka.changelog: unknown value "offf" (allowed: auto, on, off; did you mean "off"?)`},

		// what serve asks for
		{"kafka: {brokers: ['kafka://h:1']}", `kafka.brokers: "kafka://h:1" is a URL, and a broker is host:port (did you mean "h:1"?)`},
		{"kafka: {brokers: ['h:port']}", `kafka.brokers: "h:port" is not host:port`},
		{"kafka: {brokers: ['h:70000']}", `"h:70000" is not host:port`},
		{"output: {topic: ''}", `missing key output.topic (for example output: {topic: joined})`},
		{"output: {topic: orders}", `output.topic: orders is the topic of a.topic already`},
		{"topics: {dead: joined}", `topics.dead: joined is the topic of output.topic already`},
		{"topics: {late: 'late records'}", `topics.late: "late records" is not the name of a topic`},
		{"topics: {late: ..}", `topics.late: ".." is not the name of a topic`},
		{"output: {topic: " + strings.Repeat("x", 250) + "}", `has 250 characters, a topic's name has at most 249`},
		{"output: {topic: joinbench-changelog}", `kafka.group: joinbench-changelog is the topic of output.topic already`},
		{"output: {topic: joinbench-changelog}\nkafka: {changelog: off}", ""},
		{"unmatched: topic", `unmatched: topic needs topics.unmatched`},
		{"topics: {unmatched: u}", `topics.unmatched: u is written with unmatched: topic only, and unmatched is drop`},
		{"type: left\ntopics: {unmatched: u}", `topics.unmatched: u goes with type: inner`},
		{"delivery: exactly-once\nkafka: {changelog: off}", `kafka.changelog: off does not go with delivery: exactly-once`},
		{"delivery: exactly-once\nkafka: {isolation: read_uncommitted}", `kafka.isolation: read_uncommitted does not go with delivery: exactly-once`},
	} {
		j, err := Parse([]byte(served+c.text), "join.yaml")
		if err == nil {
			err = j.ValidateServe()
		}
		checkFault(t, c.text, err, c.want)
	}
	j := mustParse(t, small) // no topics
	err := j.ValidateServe()
	checkFault(t, "no a.topic", err, `missing key a.topic (for example topic: orders)`)
	checkFault(t, "no b.topic", err, `missing key b.topic (for example topic: payments)`)
}

// What goes with a.store: offset, and what without it would mean nothing.
func TestOffsetStoreMessages(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: {topic: orders, key: $.ref, store: offset}", ""},
		{"a: {topic: orders, key: $.ref, store: offset, deleted: stop, fetch_cache: 16MiB}", ""},
		{"a: {topic: orders, key: $.ref, store: offset, deleted: dead}", `a.deleted: dead needs topics.dead`},
		{"a: {topic: orders, key: $.ref, store: offset, deleted: dead}\ntopics: {dead: d}", ""},
		{"a: {topic: orders, key: $.ref, deleted: stop}", `a.deleted: stop goes with a.store: offset only, and a.store is projection`},
		{"a: {topic: orders, key: $.ref, fetch_cache: 1GiB}", `a.fetch_cache: 1GiB goes with a.store: offset only`},
		{"a: {topic: orders, key: $.ref, store: offset, deleted: skip}", `a.deleted: unknown value "skip" (allowed: emit, dead, stop)`},
	} {
		j, err := Parse([]byte("b: {topic: payments, key: '@key'}\nwindow: {after: 4h}\n"+c.text), "join.yaml")
		if err == nil {
			err = j.ValidateServe()
		}
		checkFault(t, c.text, err, c.want)
	}
}

// A join of files takes what only serve refuses.
func TestFilesTakeTheConfigurationOfServe(t *testing.T) {
	mustValidate(t, served+`delivery: exactly-once
kafka: {changelog: off, brokers: ['kafka://h'], sasl: {mechanism: plain, user: u, password: p}}
output: {topic: orders}
unmatched: topic
`)
}

func TestTLSIsOn(t *testing.T) {
	for _, c := range []struct {
		tls  TLS
		want bool
	}{{TLS{Enabled: "auto"}, false}, {TLS{Enabled: "true"}, true}, {TLS{Enabled: "auto", CA: "x"}, true},
		{TLS{Enabled: "auto", ServerName: "x"}, true}, {TLS{Enabled: "auto", Cert: "x", Key: "y"}, true}, {TLS{Enabled: "false", CA: "x"}, false}, {TLS{Enabled: "auto", InsecureSkipVerify: true}, true}} {
		if got := c.tls.On(); got != c.want {
			t.Errorf("%+v: on %v", c.tls, got)
		}
	}
}

// Whatever is wrong in a configuration, what is said of it has no password.
func TestPasswordsAreNeverShown(t *testing.T) {
	const password = "hunter2"
	for _, text := range []string{
		"kafka:\n  sasl:\n    mechanism: plain\n    user: u\n    password: hunter2\n",
		"kafka:\n  sasl:\n    mechanism: plain\n    pasword: hunter2\n",
		"kafka:\n  sasl:\n    mechanism: plain\n    password: hunter2\n    usr: u\n",
		"kafka:\n  sasl:\n    password: hunter2\n  grup: g\n",
		"kafka:\n  sasl: hunter2\n",
		"kafka:\n  sasl: [hunter2]\n",
		"kafka:\n  sasl:\n    password: [hunter2]\n",
		"kafka:\n  sasl:\n    password: {x: hunter2}\n",
		"kafka:\n  sasl:\n    password: hunter2\n    mechanism: plian\n",
		"kafka:\n  sals:\n    password: hunter2\n",
		"kafka: {sasl: {password: hunter2, usr: u}}\n",
		"kafka: {sasl: {mechanism: plain,\n  pw: hunter2}}\n",
		"kafka:\n  sasl:\n    password: \"hunter2\n",
		"kafka:\n  sasl:\n    pw: @hunter2\n",
		"kafka:\n  sasl:\n    pw: hunter2: x\n",
	} {
		j, err := Parse([]byte(served+text), "join.yaml")
		if err == nil {
			err = j.ValidateServe()
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%s\nsays\n%v", text, err)
		}
		if j == nil {
			continue
		}
		var out bytes.Buffer
		if err := j.Print(&out); err != nil {
			t.Fatal(err)
		}
		for _, v := range j.Values() {
			out.WriteString(v.Text)
		}
		if out.WriteString(j.Brief()); strings.Contains(out.String(), password) {
			t.Errorf("%s\nprints\n%s", text, &out)
		}
	}
	j := mustParse(t, served)
	for key, value := range map[string]string{"kafka.sasl": "{password: [hunter2]}", "kafka.sasl.mechanism": "[]", "kafka": "{sasl: hunter2}"} {
		if err := j.Set(key, value, "env X"); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s=%s says %v", key, value, err)
		}
	}
	if err := j.Set("kafka.sasl", "{password: hunter2", "env X"); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a mapping without its end says %v", err)
	}
	if err := j.Set("kafka", "{sasl: {password: hunter2", "env X"); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a mapping without its end says %v", err)
	}
}

// What is no password is still shown with its line.
func TestExcerptsBesideSecrets(t *testing.T) {
	_, err := Parse([]byte("kafka:\n  sasl:\n    password: hunter2\n  grup: g\n  topic: x\n"), "j")
	want := "j:4: unknown key \"kafka.grup\" (did you mean \"kafka.group\"?)\n>    4 |   grup: g\n       |   ^"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
