package store

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/stdlib"
)

// A connection to PostgreSQL can break without either side being notified, for example by a cut
// cable, a firewall or a stopped machine. These limits keep requests from waiting long. A statement
// may take statementLimit. A connection that was idle is tested for at most pingLimit before it is
// used. Connecting may take connectLimit. The server ends a transaction that is idle for idleLimit,
// because its locks block others.
const (
	statementLimit = 15 * time.Second
	pingLimit      = 2 * time.Second
	connectLimit   = 5 * time.Second
	idleLimit      = "10s"
)

// withTimeouts applies these limits to a configuration and its pools, except idleLimit, which
// setSession applies. A connect_timeout in the URL takes precedence.
func withTimeouts(config *pgx.ConnConfig) []stdlib.OptionOpenDB {
	if config.ConnectTimeout == 0 { // neither connect_timeout nor PGCONNECT_TIMEOUT
		config.ConnectTimeout = connectLimit
	}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 3}}).DialContext
	config.Tracer = &multitracer.Tracer{QueryTracers: []pgx.QueryTracer{limiter{}},
		PrepareTracers: []pgx.PrepareTracer{limiter{}}}
	return []stdlib.OptionOpenDB{stdlib.OptionShouldPing(isBroken)}
}

// isBroken tests a connection that was idle. If it returns true, pgx tests the connection again,
// reports it as bad, and database/sql opens another one.
func isBroken(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration < time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	return p.Conn.Ping(ctx) != nil
}

// limiter limits the time of each statement, except statements of the kind "other" (see
// [StatementKind]), such as those that change the schema or lock tables.
type limiter struct{}

type limiterKey struct{}

type noTimeLimitKey struct{}

// withoutTimeLimit exempts the statements of a context from the time limit.
func withoutTimeLimit(ctx context.Context) context.Context {
	return context.WithValue(ctx, noTimeLimitKey{}, true)
}

func limit(ctx context.Context, statement string) context.Context {
	if ctx.Value(noTimeLimitKey{}) != nil || StatementKind(statement) == "other" {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	return context.WithValue(ctx, limiterKey{}, cancel)
}

func release(ctx context.Context) {
	if cancel, ok := ctx.Value(limiterKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (limiter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return limit(ctx, q.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (limiter) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { release(ctx) }

// TracePrepareStart implements pgx.PrepareTracer.
func (limiter) TracePrepareStart(ctx context.Context, _ *pgx.Conn, p pgx.TracePrepareStartData) context.Context {
	return limit(ctx, p.SQL)
}

// TracePrepareEnd implements pgx.PrepareTracer.
func (limiter) TracePrepareEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareEndData) {
	release(ctx)
}
