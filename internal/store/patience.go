package store

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/stdlib"
)

// A connection to PostgreSQL can die without either side being told: a cable, a
// firewall, a machine that stopped. Then nobody waits long. A statement has
// statementLimit; a connection that was idle is tried for pingLimit before it
// is used; a new one has connectLimit. On the other side the server ends a
// transaction that says nothing for idleLimit, because its locks hold up
// everybody.
const (
	statementLimit = 15 * time.Second
	pingLimit      = 2 * time.Second
	connectLimit   = 5 * time.Second
	idleLimit      = "10s"
)

// impatient makes a configuration and its pools so. Settings in the URL take
// precedence.
func impatient(config *pgx.ConnConfig) []stdlib.OptionOpenDB {
	if config.ConnectTimeout == 0 || config.ConnectTimeout > time.Minute { // pgx's own default is two minutes
		config.ConnectTimeout = connectLimit
	}
	if config.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		config.RuntimeParams["idle_in_transaction_session_timeout"] = idleLimit
	}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 3}}).DialContext
	config.Tracer = &multitracer.Tracer{QueryTracers: []pgx.QueryTracer{limiter{}},
		PrepareTracers: []pgx.PrepareTracer{limiter{}}}
	return []stdlib.OptionOpenDB{stdlib.OptionShouldPing(answers)}
}

// answers tries a connection that was idle. It never asks database/sql to try
// again by itself unless the connection is closed, which that finds at once.
func answers(ctx context.Context, p stdlib.ShouldPingParams) (again bool) {
	if p.IdleDuration < time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	return p.Conn.Ping(ctx) != nil
}

// limiter bounds the time of each statement, but of none that changes the
// schema or locks tables.
type limiter struct{}

type limiterKey struct{}

type patientKey struct{}

// patient lets statements take as long as they do.
func patient(ctx context.Context) context.Context { return context.WithValue(ctx, patientKey{}, true) }

func limit(ctx context.Context, statement string) context.Context {
	if ctx.Value(patientKey{}) != nil || StatementKind(statement) == "other" {
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
