package kafka

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const secretText = "correct horse battery"

func secretFile(t *testing.T, text string) Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Secret{File: file}
}

// TestSASL: each mechanism gets in with the right secret, and not with another one; the secret may change while nothing restarts.
func TestSASL(t *testing.T) {
	for _, mechanism := range []string{Plain, ScramSHA256, ScramSHA512} {
		b := newBrokerWith(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "joe", secretText), kfake.SeedTopics(1, "in"))
		t.Setenv("KAFKA_TEST_SECRET", secretText)
		file := secretFile(t, secretText+"\n")
		for _, s := range []Secret{file, {Env: "KAFKA_TEST_SECRET"}} {
			c := b.consumer(Options{Brokers: b.ListenAddrs(), SASL: &SASLOptions{Mechanism: mechanism, User: "joe", Secret: s}}, ConsumerOptions{})
			c.Close()
		}
		if err := os.WriteFile(file.File, []byte("wrong"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := NewConsumer(ctx, Options{Brokers: b.ListenAddrs(), SASL: &SASLOptions{Mechanism: mechanism, User: "joe", Secret: file}}, ConsumerOptions{})
		if err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: with a wrong secret: %v", mechanism, err)
		}
	}
}

// TestOAuthTokenIsReadAnew at each authentication.
func TestOAuthTokenIsReadAnew(t *testing.T) {
	s := secretFile(t, "token-1")
	m, err := (&SASLOptions{Mechanism: OAuthBearer, Secret: s}).mechanism()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"token-2", "token-3"} {
		if err := os.WriteFile(s.File, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		_, first, err := m.Authenticate(context.Background(), "host")
		if err != nil || !bytes.Contains(first, []byte(token)) {
			t.Errorf("%q, %v; want %s in it", first, err, token)
		}
	}
}

// TestNoSecretIsShown, however options are printed.
func TestNoSecretIsShown(t *testing.T) {
	t.Setenv("KAFKA_TEST_SECRET", secretText)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := Options{Brokers: []string{"h:1"}, TLS: &TLSOptions{}, SASL: &SASLOptions{Mechanism: Plain, User: "joe", Secret: Secret{Env: "KAFKA_TEST_SECRET"}}, Log: log}
	if _, err := o.clientOpts(); err != nil {
		t.Fatal(err)
	}
	log.Info("with", "options", o)
	fmt.Fprintf(&out, "%v %+v %#v %s %+v", o, o, o, o, *o.SASL)
	if strings.Contains(out.String(), secretText) {
		t.Errorf("the secret is in %s", &out)
	}
	if !strings.Contains(out.String(), "h:1 tls PLAIN as joe") {
		t.Errorf("got %s", &out)
	}
}

// TestOptionsThatCannotBe are refused, by what is wrong with them.
func TestOptionsThatCannotBe(t *testing.T) {
	good := secretFile(t, secretText)
	dir := t.TempDir()
	noPEM := filepath.Join(dir, "no.pem")
	if err := os.WriteFile(noPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{}, "no brokers"},
		{Options{TLS: &TLSOptions{CA: noPEM, InsecureSkipVerify: true}}, "insecure_skip_verify"},
		{Options{TLS: &TLSOptions{CA: noPEM}}, noPEM},
		{Options{TLS: &TLSOptions{CA: filepath.Join(dir, "none")}}, "none"},
		{Options{TLS: &TLSOptions{Cert: noPEM}}, "key"},
		{Options{SASL: &SASLOptions{Mechanism: Plain, Secret: good}}, "user"},
		{Options{SASL: &SASLOptions{Mechanism: "GSSAPI", User: "u", Secret: good}}, `"GSSAPI"`},
		{Options{SASL: &SASLOptions{Mechanism: Plain, User: "u"}}, "one of them"},
		{Options{SASL: &SASLOptions{Mechanism: Plain, User: "u", Secret: Secret{File: good.File, Env: "X"}}}, "one of them"},
		{Options{SASL: &SASLOptions{Mechanism: Plain, User: "u", Secret: Secret{Env: "KAFKA_TEST_UNSET"}}}, "KAFKA_TEST_UNSET"},
		{Options{SASL: &SASLOptions{Mechanism: Plain, User: "u", Secret: secretFile(t, "\n")}}, "empty"},
	} {
		if c.says != "no brokers" {
			c.o.Brokers = []string{"h:1"}
		}
		if _, err := c.o.clientOpts(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: got %v, want something about %s", c.o, err, c.says)
		}
	}
}

// TestTLS: a broker whose certificate the CA signed is reached, and one that it did not sign is not, unless that was asked for.
func TestTLS(t *testing.T) {
	cert, ca := selfSigned(t)
	b := newBrokerWith(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	for _, c := range []struct {
		o  TLSOptions
		ok bool
	}{{TLSOptions{CA: ca}, true}, {TLSOptions{}, false}, {TLSOptions{InsecureSkipVerify: true}, true}, {TLSOptions{CA: ca, ServerName: "elsewhere"}, false}} {
		ctx, cancel := context.WithTimeout(context.Background(), map[bool]time.Duration{true: patience, false: time.Second}[c.ok])
		k, err := NewConsumer(ctx, Options{Brokers: b.ListenAddrs(), TLS: &c.o}, ConsumerOptions{})
		cancel()
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.o, err)
		}
		if k != nil {
			k.Close()
		}
	}
}

// selfSigned is a certificate for 127.0.0.1, and the file that has it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
