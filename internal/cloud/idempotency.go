package cloud

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"snap"
	"snap/internal/store"
)

// once answers a changing request that carries Idempotency-Key: the first time
// by its handler, from then on for a day by the same answer. The same key with
// another request is a conflict. Refusals are not kept, so that a request may
// be repeated when its cause is mended.
func (s *Service) once(ctx huma.Context, c *call, key string, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if len(key) > 200 {
		s.writeError(w, r, snap.Invalid("Idempotency-Key is longer than 200 characters", ""))
		return
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		s.writeError(w, r, &snap.Error{Code: snap.CodeTooLarge, Detail: "the body is larger than 1 MiB"})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(payload))
	request := slices.Concat([]byte(r.Method+" "+r.URL.Path+"\x00"), payload)
	kept, err := s.store.Claim(r.Context(), c.caller, key, request)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if kept != nil {
		if len(kept.Body) > 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(kept.Status)
		w.Write(kept.Body)
		return
	}
	keeper := &bodyKeeper{ResponseWriter: w}
	defer func() { s.settle(r.Context(), c, key, keeper) }()
	next(huma.WithContext(humago.NewContext(ctx.Operation(), r, keeper), ctx.Context()))
}

// settle keeps a good answer and lets go of a claim that came to nothing, also
// when the client has gone away meanwhile.
func (s *Service) settle(ctx context.Context, c *call, key string, answer *bodyKeeper) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if answer.status >= 200 && answer.status < 300 {
		err = s.store.Settle(ctx, c.caller, key, store.Reply{Status: answer.status, Body: answer.body.Bytes()})
	} else {
		err = s.store.Unclaim(ctx, c.caller, key)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the answer to an Idempotency-Key was not kept", "error", err)
	}
}

// bodyKeeper passes an answer on and keeps a copy.
type bodyKeeper struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader remembers the status.
func (k *bodyKeeper) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *bodyKeeper) Write(p []byte) (int, error) {
	k.body.Write(p)
	return k.ResponseWriter.Write(p)
}
