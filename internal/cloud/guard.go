package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"snap"
	"snap/internal/store"
)

// call holds the results of the guard's checks of a request.
type call struct {
	caller   snap.Caller
	snapshot snap.Snapshot // the snapshot that {id} names, for routes on a snapshot
	upload   store.Upload  // the push that {id} names, for routes on an upload
}

type callKey struct{}

// callOf returns the call of a request. It must be used only in routes that need a caller.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// route is one row of the route table: its name, its path, and the action that the caller must be
// allowed to take.
type route struct {
	id      string // operation ID, unique among the routes
	pattern string // "METHOD /path below the mount"
	do      snap.Action
	on      subject
	summary string
}

// subject is the kind of thing that a route's {id} names.
type subject int

const (
	onNothing  subject = iota // no {id}, or the handler resolves it
	onSnapshot                // a snapshot the caller may see
	onUpload                  // a push the caller has begun
	onPush                    // a push the caller has begun, or the snapshot it became
)

// register adds a route to a group of mounts. The middlewares in before run first, then the guard.
func register[I, O any](s *Service, g huma.API, rt route, handler func(context.Context, *I) (*O, error),
	before ...func(huma.Context, func(huma.Context))) {
	method, path, _ := strings.Cut(rt.pattern, " ")
	s.web.table = append(s.web.table, rt)
	huma.Register(g, huma.Operation{
		OperationID:   rt.id,
		Method:        method,
		Path:          path,
		Summary:       rt.summary,
		MaxBodyBytes:  1 << 20,
		DefaultStatus: successStatus[O](),
		Middlewares:   append(before, s.guard(rt, repeatOf[O]())),
	}, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, problemOf(ctx, s.telemetry.outages, err)
		}
		return out, nil
	})
}

func successStatus[O any]() int {
	if _, none := any((*O)(nil)).(*empty); none {
		return http.StatusNoContent
	}
	return http.StatusOK
}

// guard authenticates the caller, looks up the snapshot or upload that the request names, and
// authorizes the action. A request that changes data and has an Idempotency-Key is then carried out
// only once, unless repeating it is harmless.
func (s *Service) guard(rt route, onRepeat repeat) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		c, err := s.admit(r, rt)
		if err == nil {
			err = checkSurplus(ctx.Operation(), r)
		}
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		// Media types ignore case (RFC 9110 section 8.3.1).
		r.Header.Set("Content-Type", strings.ToLower(r.Header.Get("Content-Type")))
		origin := snap.OriginOf(ctx.Context())
		origin.Caller = c.caller
		ctx = huma.WithContext(ctx, snap.WithOrigin(context.WithValue(ctx.Context(), callKey{}, c), origin))
		if key := r.Header.Get("Idempotency-Key"); key != "" && changing(r) && onRepeat != repeatNew {
			s.once(ctx, c, key, onRepeat, next)
			return
		}
		next(ctx)
	}
}

// admit checks a request in this order: authentication, the credential's rate limit, whether an
// organization-level key would change a share, visibility, role. The store looks up snapshots on
// behalf of the caller, so a hidden one cannot be distinguished from one that does not exist.
func (s *Service) admit(r *http.Request, rt route) (*call, error) {
	ctx := r.Context()
	caller, err := s.authenticate(r)
	if err != nil {
		return nil, err
	}
	noteCaller(ctx, caller)
	if err := s.load.CountCredential(ctx, caller); err != nil {
		return nil, err
	}
	c := &call{caller: caller}
	if changing(r) {
		if err := s.checkOrgKeyShare(ctx, caller, rt.do, r.PathValue("id")); err != nil {
			return nil, err
		}
	}
	switch rt.on {
	case onSnapshot:
		c.snapshot, err = s.store.Snapshot(ctx, caller, r.PathValue("id"))
	case onUpload:
		c.upload, err = s.store.Upload(ctx, caller, r.PathValue("id"))
	case onPush:
		c.upload, err = s.store.Upload(ctx, caller, r.PathValue("id"))
		if errors.Is(err, snap.ErrNotFound) {
			c.snapshot, err = s.store.Snapshot(ctx, caller, r.PathValue("id"))
		}
	}
	if err != nil {
		return nil, err
	}
	if rt.do != "" {
		err := snap.Allowed(caller, rt.do, c.snapshot)
		if err != nil && changing(r) { // reading shares is not an attempt to share
			err = s.recordRefusal(ctx, c, rt.do, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkOrgKeyShare refuses an organization-level key that would change a share of the snapshot with
// this ID. It does so before any lookup, so the response is the same whether the snapshot exists or
// not.
func (s *Service) checkOrgKeyShare(ctx context.Context, c snap.Caller, do snap.Action, id string) error {
	if !c.Credential.Kind.OrgLevel() || do != snap.ActShare && do != snap.ActShareOrg {
		return nil
	}
	asked := snap.Snapshot{Org: c.Org} // the audit line repeats the ID as requested
	if clean, ok := snap.CleanIDPrefix(id); ok {
		asked.ID = clean
	}
	return s.auditRefusal(ctx, c, asked, snap.AuditShareRefused, snap.Allowed(c, do, snap.Snapshot{}))
}

// admitTo looks up the snapshot with this ID on behalf of the caller, and checks that the caller
// may perform this action on it.
func (s *Service) admitTo(ctx context.Context, c *call, id string, do snap.Action) (err error) {
	if c.snapshot, err = s.store.Snapshot(ctx, c.caller, id); err != nil {
		return err
	}
	if err := snap.Allowed(c.caller, do, c.snapshot); err != nil {
		return s.recordRefusal(ctx, c, do, err)
	}
	return nil
}

// changing reports whether a request's method is one that can change data.
func changing(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// checkSurplus refuses input that the route would ignore: a parameter given twice, or a body where
// none is accepted. A client that sends a group to the route that shares org-wide, for example, has
// made a mistake. An empty object counts as no body.
func checkSurplus(op *huma.Operation, r *http.Request) error {
	for name, values := range r.URL.Query() {
		if len(values) > 1 {
			return snap.Invalid(fmt.Sprintf("the parameter %q is given %d times", name, len(values)), "give it once")
		}
	}
	if op.RequestBody != nil || r.Body == nil {
		return nil
	}
	const maxBlank = 1 << 10 // a body of this size is refused even if it is blank
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBlank))
	if err != nil {
		return snap.Invalid("the body cannot be read", "send no body: this call takes none")
	}
	if text := bytes.TrimSpace(body); len(body) == maxBlank || len(text) > 0 && string(text) != "{}" {
		return snap.Invalid("the request has a body, but this call takes none",
			"see /openapi.json for the call that takes it")
	}
	r.Body = http.NoBody
	return nil
}

// recordRefusal records the refusal of a share, deletion or decline, and returns the refusal.
func (s *Service) recordRefusal(ctx context.Context, c *call, do snap.Action, refusal error) error {
	action := map[snap.Action]snap.AuditAction{snap.ActShare: snap.AuditShareRefused,
		snap.ActShareOrg: snap.AuditShareRefused, snap.ActDelete: snap.AuditDeleteRefused,
		snap.ActDecline: snap.AuditDeclineRefused}[do]
	if action == "" {
		return refusal
	}
	return s.auditRefusal(ctx, c.caller, c.snapshot, action, refusal)
}

// auditRefusal writes a refusal to the audit log, as this audit action, and returns the refusal.
func (s *Service) auditRefusal(ctx context.Context, c snap.Caller, sn snap.Snapshot,
	action snap.AuditAction, refusal error) error {
	err := s.store.Note(ctx, c, sn, action, snap.AuditDetail{Code: snap.CodeOf(refusal)})
	if err != nil {
		return err
	}
	return refusal
}
