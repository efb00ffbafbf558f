package pipeline

import (
	"log/slog"

	"joinbench/config"
	"joinbench/kafka"
)

// KafkaOptions are how a validated configuration reaches its brokers.
func KafkaOptions(j *config.Join, log *slog.Logger) kafka.Options {
	o := kafka.Options{Brokers: j.Kafka.Brokers, Log: log}
	if t := &j.Kafka.TLS; t.On() {
		o.TLS = &kafka.TLSOptions{CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	}
	s := &j.Kafka.SASL
	switch s.Mechanism {
	case "plain":
		o.SASL = &kafka.SASLOptions{Mechanism: kafka.Plain}
	case "scram-sha-256":
		o.SASL = &kafka.SASLOptions{Mechanism: kafka.ScramSHA256}
	case "scram-sha-512":
		o.SASL = &kafka.SASLOptions{Mechanism: kafka.ScramSHA512}
	case "oauthbearer":
		o.SASL = &kafka.SASLOptions{Mechanism: kafka.OAuthBearer, Secret: kafka.Secret{File: s.TokenFile, Env: s.TokenEnv}}
		return o
	default:
		return o
	}
	o.SASL.User = s.User
	o.SASL.Secret = kafka.Secret{File: s.PasswordFile, Env: s.PasswordEnv, Text: kafka.Text(s.Password)}
	return o
}
