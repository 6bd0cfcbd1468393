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
	"snap/api"
	"snap/internal/store"
)

// repeat is how the service answers a repeated request with the same Idempotency-Key.
type repeat int

const (
	repeatAnswer  repeat = iota // the same answer, which is kept for a day
	repeatRefusal               // a refusal: the answer held a secret, which is not kept
	repeatAnew                  // a new answer: it holds links, and repeating the request is harmless
)

// repeatOf returns how a route with this type of answer handles repeated requests. An answer with a
// secret must not be written to the database, where it would outlive the request.
func repeatOf[O any]() repeat {
	switch any((*O)(nil)).(type) {
	case *body[api.NewKey], *body[api.NewWebhook]:
		return repeatRefusal
	case *body[api.PullResponse], *body[api.PartsResponse]:
		return repeatAnew
	}
	return repeatAnswer
}

var errSecretNotKept = &snap.Error{
	Code:   snap.CodeConflict,
	Detail: "this request was carried out before; its answer held a secret, which the service does not keep",
	Hint: "if the secret did not reach you, delete what the request created and create another with a new " +
		"Idempotency-Key",
}

// once carries out a changing request with an Idempotency-Key only once. For a day it answers the
// same request again as the parameter again says. The same key with another request is a conflict.
// Refusals are not kept, so a request may be repeated when the cause of its refusal is gone.
func (s *Service) once(ctx huma.Context, c *call, key string, again repeat, next func(huma.Context)) {
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
	if kept != nil && again == repeatRefusal {
		s.writeError(w, r, errSecretNotKept)
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
	keeper := &bodyKeeper{ResponseWriter: w, secret: again == repeatRefusal}
	defer func() { s.finish(r.Context(), c, key, keeper) }()
	next(huma.WithContext(humago.NewContext(ctx.Operation(), r, keeper), ctx.Context()))
}

// finish stores a successful answer. After any other answer it releases the claim, even if the
// client has disconnected.
func (s *Service) finish(ctx context.Context, c *call, key string, answer *bodyKeeper) {
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

// bodyKeeper passes an answer on and keeps a copy. Of an answer with a secret it keeps only the
// status.
type bodyKeeper struct {
	http.ResponseWriter
	secret bool
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (k *bodyKeeper) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *bodyKeeper) Write(p []byte) (int, error) {
	if !k.secret {
		k.body.Write(p)
	}
	return k.ResponseWriter.Write(p)
}
