package cloud

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/maypok86/otter/v2"

	"snap"
	"snap/internal/store"
)

// This page keeps answers of the listing. A kept answer is given again only
// when it is what the listing would answer now: the same credential asks for
// the same page, nothing at all was committed to the database since before the
// answer was made (store.Version), and no clock has passed at which a share or
// the credential ends. Every request asks the database for its version after it
// has arrived, so a revocation acts at the next request, on every replica.

// keptBytes bounds the memory of kept answers: some 3,000 pages of 50.
// keptAnswer bounds one of them.
const (
	keptBytes  = 64 << 20
	keptAnswer = 1 << 20
)

// kept are answers by the hash of what was asked, and by whom.
type kept struct {
	answers *otter.Cache[[32]byte, *keptPage]
	version func(context.Context) (store.Version, error)
	now     func() time.Time

	misses atomic.Int64 // since an answer was found last
	turn   atomic.Int64
}

// keptPage is an answer, and when it holds.
type keptPage struct {
	body        []byte
	contentType string
	caller      snap.Caller
	state       string
	from, until time.Time
}

func newKept(s *store.Store) *kept {
	return &kept{version: s.Version, now: s.Now, answers: otter.Must(&otter.Options[[32]byte, *keptPage]{
		MaximumWeight: keptBytes,
		Weigher:       func(_ [32]byte, p *keptPage) uint32 { return uint32(len(p.body)) + 512 },
	})}
}

// keep stands before the guard of a route whose answers are kept: it answers,
// or lets the route answer and keeps what it says. What cannot be kept or
// cannot be proven goes on as if nothing were kept.
func (s *Service) keep(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	key, ok := keptKey(r)
	if !ok || !s.kept.worthwhile() {
		next(ctx)
		return
	}
	v, err := s.kept.version(r.Context())
	if err != nil {
		s.kept.misses.Add(1)
		next(ctx)
		return
	}
	if page := s.kept.find(key, v); page != nil {
		noteCaller(r.Context(), page.caller)
		if err := s.admission.credential(r, page.caller); err != nil {
			s.writeError(w, r, err)
			return
		}
		s.metrics.kept.Inc()
		page.write(w)
		return
	}
	out := &copying{answered: answered{ResponseWriter: w}}
	next(humago.NewContext(ctx.Operation(), r, out))
	s.kept.add(r.Context(), key, v, out)
}

// keptKey returns the hash of the request and its credential. A request that
// is not plainly one for a listing has none.
func keptKey(r *http.Request) (key [32]byte, ok bool) {
	if r.Method != http.MethodGet {
		return key, false
	}
	h := sha256.New()
	cookies := strings.Join(r.Header["Cookie"], ";")
	for _, part := range []string{r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("X-API-Key"), cookies, r.Header.Get("Accept")} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	h.Sum(key[:0])
	return key, true
}

// When lately nothing was found, only one request in many asks for the version
// any more: where somebody writes all the time, keeping answers is no use.
const (
	patience = 64
	seldom   = 16
)

func (k *kept) worthwhile() bool {
	return k.misses.Load() < patience || k.turn.Add(1)%seldom == 0
}

// find returns the answer that holds at a version read after the request
// came, if there is one.
func (k *kept) find(key [32]byte, v store.Version) *keptPage {
	page, ok := k.answers.GetIfPresent(key)
	if now := k.now(); !ok || page.state != v.State || now.Before(page.from) || !now.Before(page.until) {
		k.misses.Add(1)
		return nil
	}
	k.misses.Store(0)
	return page
}

// add keeps an answer that was made after a version was read. Should something
// have been committed meanwhile, no version to come will equal that one. Only
// whole answers of status 200 are kept, and only while the credential holds.
func (k *kept) add(ctx context.Context, key [32]byte, v store.Version, out *copying) {
	i, ok := ctx.Value(infoKey{}).(*info)
	now := k.now()
	if !ok || out.status != http.StatusOK || out.failed || now.Before(v.At) || !now.Before(i.caller.Credential.Until) {
		return
	}
	until := i.caller.Credential.Until
	if !v.Next.IsZero() && v.Next.Before(until) {
		until = v.Next
	}
	k.answers.Set(key, &keptPage{
		body: out.body, contentType: out.Header().Get("Content-Type"), caller: i.caller,
		state: v.State, from: v.At, until: until,
	})
}

func (p *keptPage) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", p.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(p.body)))
	w.WriteHeader(http.StatusOK)
	w.Write(p.body)
}

// copying is an answer that is also remembered.
type copying struct {
	answered
	body   []byte
	failed bool // or too long to be kept
}

func (c *copying) Write(p []byte) (int, error) {
	n, err := c.answered.Write(p)
	if err != nil || len(c.body)+len(p) > keptAnswer {
		c.failed, c.body = true, nil
	}
	if !c.failed {
		c.body = append(c.body, p...)
	}
	return n, err
}
