package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"snap"
	"snap/api"
)

// health is the result of a request for a service's readiness.
type health struct {
	parts map[string]string // state of the database and the object store: "ok", or the problem
	took  time.Duration
	skew  time.Duration // the service's clock minus ours, to the second (from the Date header)
}

// maxHealth limits the bytes read of the response.
const maxHealth = 1 << 20

// health requests the service's readiness. It needs no credential.
func (a *app) health(ctx context.Context, base string) (health, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return health{}, fmt.Errorf("make the request: %w", err)
	}
	began := a.now()
	res, err := a.http().Do(req)
	if err != nil {
		return health{}, api.Unreachable(base, err)
	}
	defer res.Body.Close()
	h := health{took: a.now().Sub(began)}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxHealth)).Decode(&h.parts); err != nil {
		return h, &snap.Error{Code: snap.CodeUnreachable,
			Detail: fmt.Sprintf("the response from %s is not from the cloud service (status %d)", base, res.StatusCode),
			Hint:   "check cloud.url, and any proxy in between", Cause: err}
	}
	if theirs, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		h.skew = theirs.Sub(a.now())
	}
	return h, nil
}
