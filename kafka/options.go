package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Options say how to reach the brokers. What they print is without any secret, so they may be logged.
type Options struct {
	Brokers  []string // host:port, at least one
	ClientID string   // as brokers show it; empty: joinbench
	TLS      *TLSOptions
	SASL     *SASLOptions
	Log      *slog.Logger // nil: nothing is logged
}

// TLSOptions encrypt the connections. All of them may be empty: then the system's authorities are trusted.
type TLSOptions struct {
	CA         string // file of certificates (PEM) that are trusted in place of the system's
	Cert, Key  string // files of our own certificate and its key, both or neither
	ServerName string // that the brokers' certificates must have, if it is not the name they are reached by
	// InsecureSkipVerify takes any certificate. It has to be asked for by itself: together with CA or ServerName, which it
	// would make worthless, it is refused.
	InsecureSkipVerify bool
}

// Mechanisms of SASL.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
)

// SASLOptions say who we are.
type SASLOptions struct {
	Mechanism string
	User      string // not with OAuthBearer
	Secret    Secret // the password; with OAuthBearer the token
}

// Secret is where a secret is found: in a file, in an environment variable, or here. A file and a variable are read anew
// whenever a connection is authenticated, so that a token that was renewed, or a password that was changed, is taken without a
// restart.
type Secret struct {
	File, Env string
	Text      Text
}

// Text is a secret itself. However it is printed, it is not shown.
type Text string

// Format implements fmt.Formatter.
func (t Text) Format(f fmt.State, _ rune) {
	if t != "" {
		_, _ = f.Write([]byte("***"))
	}
}

// MarshalText implements encoding.TextMarshaler, for JSON and logs.
func (t Text) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(t)), nil }

// read gets the secret. A line feed at its end is not part of it: editors leave one.
func (s Secret) read() (string, error) {
	if s.Text != "" {
		return string(s.Text), nil
	}
	if s.File != "" {
		b, err := os.ReadFile(s.File)
		if err != nil {
			return "", fmt.Errorf("secret: %w", err)
		}
		if v := strings.TrimRight(string(b), "\r\n"); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("secret: file %s is empty", s.File)
	}
	if v := os.Getenv(s.Env); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("secret: environment variable %s is not set", s.Env)
}

// check says what is wrong with where a secret is said to be; the secret itself is read too, so that a wrong path is told
// at the start.
func (s Secret) check() error {
	places := 0
	for _, p := range []string{s.File, s.Env, string(s.Text)} {
		if p != "" {
			places++
		}
	}
	if places != 1 {
		return errors.New("sasl: the secret comes from a file, from an environment variable, or is given itself: give one of them")
	}
	_, err := s.read()
	return err
}

// String says which brokers, and how connections are protected.
func (o Options) String() string {
	s := strings.Join(o.Brokers, ",")
	switch {
	case o.TLS == nil:
	case o.TLS.InsecureSkipVerify:
		s += " tls (any certificate)"
	default:
		s += " tls"
	}
	if o.SASL != nil {
		s += " " + o.SASL.Mechanism
		if o.SASL.User != "" {
			s += " as " + o.SASL.User
		}
	}
	return s
}

// LogValue implements slog.LogValuer.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// log is the logger, if there is none one that drops everything.
func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// metadataAge is how old the client's view of topics may get: its own default of five minutes is long for a leader
// that moved while nothing was sent to it.
const metadataAge = time.Minute

// clientOpts are the client's options that all our clients share. What is not here is as the client has it, above all: topics are not
// created by asking for them, requests are tried again for as long as that may help, and connections that break are
// made again.
func (o Options) clientOpts() ([]kgo.Opt, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("kafka: no brokers are given")
	}
	id := o.ClientID
	if id == "" {
		id = "joinbench"
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(id),
		kgo.WithLogger(newLogger(o.log())),
		kgo.WithHooks(&outages{log: o.log()}),
		kgo.MetadataMaxAge(metadataAge),
		kgo.DisableClientMetrics(), // brokers get what they are asked to store, and nothing about this process
	}
	if o.TLS != nil {
		c, err := o.TLS.config()
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if o.SASL != nil {
		m, err := o.SASL.mechanism()
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		opts = append(opts, kgo.SASL(m))
		if o.TLS == nil && (o.SASL.Mechanism == Plain || o.SASL.Mechanism == OAuthBearer) {
			o.log().Warn("kafka: the secret goes over the network in the clear: no TLS", "mechanism", o.SASL.Mechanism)
		}
	}
	return opts, nil
}

// config makes the TLS configuration.
func (t *TLSOptions) config() (*tls.Config, error) {
	if t.InsecureSkipVerify && (t.CA != "" || t.ServerName != "") {
		return nil, errors.New("tls: certificates are not verified (insecure_skip_verify), so a CA or a server name would mean nothing: give one or the other")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: %s has no certificate in it (PEM)", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("tls: a certificate needs its key, and the other way around")
	}
	if t.Cert != "" {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// mechanism is the client's.
func (s *SASLOptions) mechanism() (sasl.Mechanism, error) {
	if s.User == "" && s.Mechanism != OAuthBearer {
		return nil, fmt.Errorf("sasl: %s needs a user", s.Mechanism)
	}
	if err := s.Secret.check(); err != nil {
		return nil, err
	}
	scramAuth := func(context.Context) (scram.Auth, error) {
		pass, err := s.Secret.read()
		return scram.Auth{User: s.User, Pass: pass}, err
	}
	switch s.Mechanism {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := s.Secret.read()
			return plain.Auth{User: s.User, Pass: pass}, err
		}), nil
	case ScramSHA256:
		return scram.Sha256(scramAuth), nil
	case ScramSHA512:
		return scram.Sha512(scramAuth), nil
	case OAuthBearer:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.Secret.read()
			return oauth.Auth{Token: token}, err
		}), nil
	}
	return nil, fmt.Errorf("sasl: unknown mechanism %q (known: %s, %s, %s, %s)", s.Mechanism, Plain, ScramSHA256, ScramSHA512, OAuthBearer)
}
