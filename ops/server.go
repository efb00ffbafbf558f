package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ServerOptions say where a Server listens, and what it shows.
type ServerOptions struct {
	Listen string // host:port; port 0 takes a free one
	// Status is asked by requests, from any goroutine.
	Status func() *Status
	// Pprof also shows profiles, below /debug/pprof/. Only where Listen is a loopback address: they show what is in memory.
	Pprof bool
	Log   *slog.Logger
}

// stuckAfter is how long one batch may take before /healthz says that the process is not well: longer than an outage of brokers that a
// commit waits out.
const stuckAfter = 10 * time.Minute

// Server answers /metrics, /healthz, /readyz and /status.
type Server struct {
	addr string
	http http.Server
	done chan struct{}
}

// Serve listens, and answers until Close. An address that is taken, or that is not this machine's, is an error at once.
func Serve(o ServerOptions) (*Server, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port (for example 127.0.0.1:9464): %w", o.Listen, err)
	}
	local := loopback(host)
	if o.Pprof && !local {
		return nil, fmt.Errorf("profiles show what is in memory, and %s is not a loopback address: listen on 127.0.0.1, or leave them out", o.Listen)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	if !local {
		o.Log.Warn("status and metrics are open to whoever reaches this address: there is no password on them", "address", l.Addr().String())
	}
	s := &Server{addr: l.Addr().String(), done: make(chan struct{})}
	s.http.Handler = o.handler()
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.IdleTimeout = 10*time.Second, 30*time.Second, 2*time.Minute
	s.http.MaxHeaderBytes = 16 << 10
	s.http.ErrorLog = slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("the HTTP server ended; the join goes on without", "error", err)
		}
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.addr }

// closeWait is how long answers that are on their way may take when the server is closed.
const closeWait = time.Second

// Close ends the server; nil is one that was not started.
func (s *Server) Close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.done
}

// loopback says whether only this machine reaches an address. A name is not looked up: it may mean something else tomorrow.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (o *ServerOptions) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(NewRegistry(o.Status), promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	mux.HandleFunc("GET /status", o.status)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, "joinbench: /status /metrics /healthz /readyz")
	})
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound) // arguments may hold what is nobody's business
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// healthz: the process is worth keeping. Brokers that are away are no reason to start it anew.
func (o *ServerOptions) healthz(w http.ResponseWriter, _ *http.Request) {
	if s := o.Status(); s.Stuck(stuckAfter) {
		text(w, http.StatusServiceUnavailable, fmt.Sprintf("stuck: at one batch for %s", span(time.Duration(s.BusyS*float64(time.Second)))))
		return
	}
	text(w, http.StatusOK, "ok")
}

// readyz: the state is restored, and records are joined.
func (o *ServerOptions) readyz(w http.ResponseWriter, _ *http.Request) {
	switch s := o.Status(); {
	case s.Ready():
		text(w, http.StatusOK, s.State)
	case s.State == Restoring && s.Restore.All > 0:
		text(w, http.StatusServiceUnavailable, fmt.Sprintf("%s: %d of %d offsets of the changelog", s.State, s.Restore.Done, s.Restore.All))
	default:
		text(w, http.StatusServiceUnavailable, s.State)
	}
}

func (o *ServerOptions) status(w http.ResponseWriter, _ *http.Request) {
	data, err := json.MarshalIndent(o.Status(), "", "  ")
	if err != nil {
		text(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}

func text(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, line)
}
