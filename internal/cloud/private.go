package cloud

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"snap"
)

// private serves the operator: metrics, profiles and health. It requires no credential, so its
// address must not be reachable from outside.
func (s *Service) private() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.telemetry.metrics.handler())
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	for path, h := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace,
	} {
		mux.Handle("GET /debug/pprof/"+path, refuseHostNames(h))
	}
	return mux
}

// refuseHostNames refuses requests for a host name other than localhost. Otherwise a web page whose
// name resolves to this machine could read a profile, which holds memory contents.
func refuseHostNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(r.Host); err == nil {
			host = name
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "profiles are served at an IP address or localhost only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servePrivate serves the private listener, if one is configured, until stop is called.
func (s *Service) servePrivate(ctx context.Context) (stop func(), err error) {
	if s.config.Private.Listen == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Private.Listen)
	if err != nil {
		return nil, snap.Usage("cannot listen on "+s.config.Private.Listen+": "+err.Error(),
			"set private.listen to another address, or stop the program that uses this one")
	}
	server := &http.Server{
		Handler: s.private(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); err != nil && ctx.Err() == nil {
			s.log.Warn("the private listener ended", "error", err)
		}
	}()
	s.log.Info("serving metrics and profiles", "address", listener.Addr().String())
	return func() {
		_ = server.Close() // interrupts a profile that is being recorded
		<-done
	}, nil
}
