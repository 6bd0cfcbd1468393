package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"snap"
	"snap/internal/loadcontrol"
)

// drain is the time that running requests get to finish at shutdown.
const drain = 20 * time.Second

// Run serves until ctx is done. cmd/snapcloud cancels ctx on SIGTERM and Ctrl-C. Run then accepts
// no new requests, ends the background work, and gives running requests 20 seconds to finish.
// ready, if not nil, is called once with the address of the listener.
func Run(ctx context.Context, c Config, o Options, ready func(net.Addr)) error {
	if o.Log == nil {
		o.Log = slog.New(newLogHandler(c.Log, os.Stderr))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return snap.Usage("cannot listen on "+c.Listen+": "+err.Error(),
			"choose another address with --listen, or stop the program that uses this one")
	}
	defer listener.Close()
	s, err := New(ctx, c, o)
	if err != nil && ctx.Err() != nil {
		o.Log.Info("stopped before the service was ready; the next start continues")
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	stopPrivate, err := s.servePrivate(ctx)
	if err != nil {
		return err
	}
	defer stopPrivate()
	server := s.newServer()
	waitForBackground := s.startBackground(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if len(c.Organizations) == 0 {
		s.log.Warn("the configuration lists no organization, so nobody can sign in; see docs/configuration.md")
	}
	s.log.Info("serving", "address", listener.Addr().String(), "public_url", c.PublicURL)
	if ready != nil {
		ready(listener.Addr())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.log.Info("stopping")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err = server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // downloads resume with their next range
	}
	waitForBackground()
	s.signin.Wait()
	return err
}

// newServer returns the HTTP server. It limits the number of connections and the size of a
// request's header.
func (s *Service) newServer() *http.Server {
	connections := loadcontrol.NewConnections(bound(s.config.Limits.Connections, defaultConnections),
		func() { s.countRefusal("connections") })
	return &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         connections.Changed,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
