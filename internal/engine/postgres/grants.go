package postgres

import (
	"context"
	"fmt"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

var _ engine.Granter = Engine{}

// CheckGrant implements [engine.Granter].
func (Engine) CheckGrant(statement string) error {
	all, err := statements(strings.TrimSuffix(strings.TrimSpace(statement), ";") + ";")
	if err == nil && len(all) == 1 {
		grants := all[0][0].is(word, "grant")
		defaults := len(all[0]) > 3 && all[0][0].is(word, "alter") && all[0][1].is(word, "default") &&
			all[0][2].is(word, "privileges")
		if grants || defaults {
			return nil
		}
	}
	return engine.NotGrant(statement)
}

// grant applies the snapshot's grants and runs the target's GRANT statements, with the rights of
// the user who loads. [scratch.Swap] runs it before the old content is replaced.
func (s *scratch) grant(ctx context.Context) error {
	if len(s.o.Grants)+len(s.grants) == 0 {
		return nil
	}
	conn, err := s.asUser(ctx)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	if err := s.applyGrants(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.PgConn().Exec(ctx, usersNames).ReadAll(); err != nil {
		return s.db.failure(err)
	}
	for _, statement := range s.o.Grants {
		if _, err := conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return s.grantFailure(statement, err)
		}
	}
	_, err = conn.PgConn().Exec(ctx, builtInNames).ReadAll()
	return s.db.failure(err)
}

func (s *scratch) grantFailure(statement string, err error) error {
	if state(err) == "" {
		return s.db.failure(err)
	}
	e := &snap.Error{Code: snap.CodeDatabase, Cause: err,
		Detail: fmt.Sprintf("the grant %q failed: %s", engine.Shortened(statement), message(err)),
		Hint:   "correct the target's grants; nothing was replaced"}
	if role := missingRole.FindStringSubmatch(message(err)); role != nil {
		e.Hint = "on the destination's server, run: CREATE ROLE " + role[1] + "; nothing was replaced"
	}
	if s.into != nil {
		return s.into.failure(e)
	}
	return e
}

// extensionFailure returns the error for an extension that could not be created.
func (d database) extensionFailure(x schema.Extension, err error) error {
	return d.advised(err, fmt.Sprintf("the extension %q cannot be created", x.Name))
}
