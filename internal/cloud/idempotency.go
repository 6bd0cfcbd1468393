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
	"snap/internal/loadcontrol"
	"snap/internal/store"
)

// repeat is how the service responds to a repeated request with the same Idempotency-Key.
type repeat int

const (
	repeatAnswer  repeat = iota // the same response, which is stored for a day
	repeatRefusal               // a refusal, because the response contained a secret, which is not stored
	repeatNew                   // a new response, because it contains links and repeating the request is harmless
)

// repeatOf returns how a route with this type of response handles repeated requests. A response
// with a secret must not be written to the database, where the secret would outlive the request.
func repeatOf[O any]() repeat {
	switch any((*O)(nil)).(type) {
	case *body[api.NewKey], *body[api.NewWebhook]:
		return repeatRefusal
	case *body[api.PullResponse], *body[api.PartsResponse], *body[api.DeltaOffer], *body[api.DeltaUpload]:
		return repeatNew
	}
	return repeatAnswer
}

var errSecretNotKept = &snap.Error{
	Code:   snap.CodeConflict,
	Detail: "this request was carried out before; its response contained a secret, which the service does not store",
	Hint: "if the secret did not reach you, delete what the request created and create another with a new " +
		"Idempotency-Key",
}

// once carries out a changing request with an Idempotency-Key only once. For a day, the parameter
// onRepeat decides how a repetition of the request is handled. The same key with another request is
// a conflict. Refusals are not stored, so a request may be repeated when the cause of its refusal
// is gone.
func (s *Service) once(ctx huma.Context, c *call, key string, onRepeat repeat, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if len(key) > 200 {
		s.writeError(w, r, snap.Invalid("Idempotency-Key is longer than 200 characters", ""))
		return
	}
	if !snap.Storable(key) {
		s.writeError(w, r, snap.Invalid("Idempotency-Key is not UTF-8", ""))
		return
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		s.writeError(w, r, &snap.Error{Code: snap.CodeTooLarge, Detail: "the body is larger than 1 MiB"})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(payload))
	request := slices.Concat([]byte(r.Method+" "+r.URL.Path+"\x00"), payload)
	earlier, err := s.store.Claim(r.Context(), c.caller, key, request)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if earlier != nil && onRepeat == repeatRefusal {
		s.writeError(w, r, errSecretNotKept)
		return
	}
	if earlier != nil {
		if len(earlier.Body) > 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(earlier.Status)
		w.Write(earlier.Body)
		return
	}
	var kept bytes.Buffer // stays empty when the response contains a secret
	answer := &loadcontrol.Response{ResponseWriter: w}
	if onRepeat != repeatRefusal {
		answer.Copy = &kept
	}
	defer func() { s.finish(r.Context(), c, key, store.Reply{Status: answer.Status, Body: kept.Bytes()}) }()
	next(huma.WithContext(humago.NewContext(ctx.Operation(), r, answer), ctx.Context()))
}

// finish stores a successful response. After any other response it releases the claim. It does both
// even if the client has disconnected.
func (s *Service) finish(ctx context.Context, c *call, key string, answer store.Reply) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if answer.Status >= 200 && answer.Status < 300 {
		err = s.store.SaveReply(ctx, c.caller, key, answer)
	} else {
		err = s.store.Unclaim(ctx, c.caller, key)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the response to a request with an Idempotency-Key was not stored", "error", err)
	}
}
