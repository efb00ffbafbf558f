package pipeline

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"joinbench/config"
	"joinbench/kafka"
)

// What the configuration says reaches the client, each mechanism with its own secret.
func TestKafkaOptions(t *testing.T) {
	tls := &kafka.TLSOptions{CA: "/ca", Cert: "/c", Key: "/k", ServerName: "s"}
	for _, c := range []struct {
		text string
		want kafka.Options
	}{
		{"brokers: [h:1, i:2]", kafka.Options{Brokers: []string{"h:1", "i:2"}}},
		{"brokers: [h:1]\n  tls: {enabled: true}", kafka.Options{Brokers: []string{"h:1"}, TLS: &kafka.TLSOptions{}}},
		{"brokers: [h:1]\n  tls: {insecure_skip_verify: true}", kafka.Options{Brokers: []string{"h:1"}, TLS: &kafka.TLSOptions{InsecureSkipVerify: true}}},
		{"brokers: [h:1]\n  tls: {ca: /ca, cert: /c, key: /k, server_name: s}", kafka.Options{Brokers: []string{"h:1"}, TLS: tls}},
		{"brokers: [h:1]\n  sasl: {mechanism: plain, user: u, password: p}", kafka.Options{Brokers: []string{"h:1"},
			SASL: &kafka.SASLOptions{Mechanism: kafka.Plain, User: "u", Secret: kafka.Secret{Text: "p"}}}},
		{"brokers: [h:1]\n  sasl: {mechanism: scram-sha-256, user: u, password_file: /p}", kafka.Options{Brokers: []string{"h:1"},
			SASL: &kafka.SASLOptions{Mechanism: kafka.ScramSHA256, User: "u", Secret: kafka.Secret{File: "/p"}}}},
		{"brokers: [h:1]\n  sasl: {mechanism: scram-sha-512, user: u, password_env: P}", kafka.Options{Brokers: []string{"h:1"},
			SASL: &kafka.SASLOptions{Mechanism: kafka.ScramSHA512, User: "u", Secret: kafka.Secret{Env: "P"}}}},
		{"brokers: [h:1]\n  sasl: {mechanism: oauthbearer, token_file: /t}", kafka.Options{Brokers: []string{"h:1"},
			SASL: &kafka.SASLOptions{Mechanism: kafka.OAuthBearer, Secret: kafka.Secret{File: "/t"}}}},
	} {
		j, err := config.Parse([]byte("a: {key: $.x, topic: a}\nb: {key: $.x, topic: b}\nwindow: {after: 1h}\nkafka:\n  "+c.text+"\n"), "join.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := j.ValidateServe(); err != nil {
			t.Fatal(err)
		}
		if got := KafkaOptions(j, nil); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.text, got, c.want)
		}
	}
}

// However options are printed, the password is not.
func TestKafkaOptionsShowNoPassword(t *testing.T) {
	s := kafka.Secret{Text: "hunter2"}
	js, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	o := kafka.Options{SASL: &kafka.SASLOptions{Mechanism: kafka.Plain, User: "u", Secret: s}}
	for _, text := range []string{string(js), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s.Text, s.Text, s.Text), o.String(),
		o.LogValue().String(), fmt.Sprintf("%+v %#v", o, o.SASL)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
			t.Error(text)
		}
	}
}
