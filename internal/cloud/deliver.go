package cloud

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"

	"snap/api"
	"snap/internal/auth"
	"snap/internal/store"
)

// retryWaits returns the waits before the second and each later attempt, as the Standard Webhooks
// specification suggests. After the last attempt a message is given up.
func retryWaits() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// Messages are sent in turns. In a turn, one replica sends at most deliverBatch messages of one
// webhook, one after another. deliverLease is how long a turn may last, and receiverTimeout is how
// long a receiver may take to respond. A replica has at most maxTurns concurrent turns, of which at
// most maxTurnsOfOrg are for one organization, so that receivers that hang leave room for the
// receivers of other organizations.
const (
	deliverBatch    = 10
	receiverTimeout = 10 * time.Second
	deliverLease    = (deliverBatch + 2) * receiverTimeout
	maxTurns        = 256
	maxTurnsOfOrg   = 4
)

// lanes runs the turns of one replica. A lane is a webhook that is leased for a turn; see
// [store.Lane].
type lanes struct {
	service *Service
	turns   sync.WaitGroup
	more    chan struct{} // receives a value when a turn has ended, so that another can begin

	mu    sync.Mutex
	all   int
	ofOrg map[int64]int
	tried int
	err   error // of the first turn that failed
}

func (s *Service) newLanes() *lanes {
	return &lanes{service: s, more: make(chan struct{}, 1), ofOrg: map[int64]int{}}
}

// Deliver sends the webhook messages that are due and returns how many attempts it made. Several
// replicas may call it at once: each webhook is leased to one of them. A replica that is delayed
// beyond its lease begins no further attempt, and the result of an attempt that it had begun is
// ignored.
func (s *Service) Deliver(ctx context.Context) (tried int, err error) {
	if err := s.Sequence(ctx); err != nil { // events of altered logs wait, and others are sent
		s.log.WarnContext(ctx, "cannot continue some audit logs", "error", err)
	}
	l := s.newLanes()
	for {
		n, err := l.begin(ctx)
		l.turns.Wait()
		if err = errors.Join(err, l.err); n == 0 || err != nil {
			return l.tried, err
		}
	}
}

// run begins turns until ctx is done, and then waits for running turns to end.
func (l *lanes) run(ctx context.Context) {
	defer l.turns.Wait()
	l.service.repeatWhen(ctx, "webhooks", deliverEvery, l.more, func(ctx context.Context) error {
		return l.service.job(ctx, "webhooks", func(ctx context.Context) error {
			_, err := l.begin(ctx)
			return errors.Join(err, l.failure())
		})
	})
}

// failure returns the first error of a turn since the last call.
func (l *lanes) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	l.err = nil
	return err
}

// begin begins a turn for each webhook that has messages to send and for which there is room. It
// returns how many turns it began.
func (l *lanes) begin(ctx context.Context) (begun int, err error) {
	st := l.service.store
	waiting, err := st.Lanes(ctx)
	if err != nil {
		return 0, err
	}
	for _, w := range waiting {
		if !l.enter(w.Org) {
			continue
		}
		lane, held, err := st.ClaimLane(ctx, w, deliverLease, deliverBatch)
		if err != nil || !held {
			l.leave(w.Org)
			if err != nil {
				return begun, err
			}
			continue
		}
		begun++
		l.turns.Go(func() {
			tried, err := l.service.turn(ctx, lane)
			l.finish(w.Org, tried, err)
		})
	}
	return begun, nil
}

// enter reserves room for a turn of an organization. It returns false if there is none.
func (l *lanes) enter(org int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxTurns || l.ofOrg[org] >= maxTurnsOfOrg {
		return false
	}
	l.all++
	l.ofOrg[org]++
	return true
}

func (l *lanes) leave(org int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.ofOrg[org]--; l.ofOrg[org] == 0 {
		delete(l.ofOrg, org)
	}
}

func (l *lanes) finish(org int64, tried int, err error) {
	l.leave(org)
	l.mu.Lock()
	l.tried += tried
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// turn sends the messages of a lane and then releases the lane.
func (s *Service) turn(ctx context.Context, l store.Lane) (tried int, err error) {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err = errors.Join(err, s.store.ReleaseLane(ctx, l))
	}()
	for _, d := range l.Messages {
		if !s.now().Before(l.Until) {
			break // the lease has ended
		}
		ok, err := s.deliver(ctx, l, d)
		if err != nil {
			return tried, err
		}
		if tried++; !ok {
			break // the lane may pause now, or be disabled
		}
	}
	return tried, nil
}

// deliver makes one attempt at a message and records the result.
func (s *Service) deliver(ctx context.Context, l store.Lane, d store.Delivery) (ok bool, err error) {
	traced, end := s.telemetry.tracing.begin(ctx, "deliver webhook", trace.SpanKindClient)
	o, err := s.send(traced, l.Webhook, d)
	end(err)
	if ctx.Err() != nil {
		return false, nil //nolint:nilerr // an interrupted attempt does not count, and the message is due again at once
	}
	if waits := retryWaits(); err != nil && d.Attempts < len(waits) {
		o.Next = s.now().Add(waits[d.Attempts])
	}
	held, err := s.store.Sent(ctx, l, d, o)
	if held {
		s.telemetry.metrics.deliveries.WithLabelValues(deliveryOutcome(o)).Inc()
	}
	return o.OK, err
}

func deliveryOutcome(o store.Outcome) string {
	switch {
	case o.OK:
		return "delivered"
	case o.Next.IsZero() && !o.Gone:
		return "given_up"
	}
	return "retried"
}

// send makes one attempt at a message. The message contains the newest checkpoint of the audit log.
func (s *Service) send(ctx context.Context, w store.Webhook, d store.Delivery) (store.Outcome, error) {
	e := d.Event
	checkpoint, err := s.store.AuditCheckpoint(ctx, w.OrgID)
	if err != nil {
		return store.Outcome{Status: "not sent"}, err
	}
	return s.post(ctx, w, d.ID, api.WebhookEvent{Type: e.Action, Timestamp: e.At, Number: d.Number,
		Log:  &api.WebhookLog{Line: e.Seq, Checkpoint: checkpoint},
		Data: api.WebhookData{Snapshot: e.Snapshot, Organization: e.ActorOrg, Actor: e.Actor, Detail: e.Detail}})
}

// post sends an event to the receiver of a webhook.
func (s *Service) post(ctx context.Context, w store.Webhook, id string, e api.WebhookEvent) (store.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, receiverTimeout)
	defer cancel()
	if w.Format == mailFormat {
		return s.mailEvent(ctx, w, id, e)
	}
	return s.request(ctx, w, id, e)
}

// request sends an event to the URL of a webhook, signed as in the Standard Webhooks specification.
// It does not follow redirects, and reads at most 64 KiB of the response.
func (s *Service) request(ctx context.Context, w store.Webhook, id string, e api.WebhookEvent) (o store.Outcome,
	err error) {
	payload, err := message(w.Format, e)
	if err != nil {
		return o, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(payload))
	if err != nil {
		return store.Outcome{Status: "not a URL"}, err
	}
	secrets, err := s.hookSecrets(w)
	if err != nil {
		return store.Outcome{Status: "not sent: its secret cannot be decrypted; rotate it"}, err
	}
	stamp := strconv.FormatInt(s.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "snapcloud")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", stamp)
	req.Header.Set("Webhook-Signature", signatures(secrets, id, stamp, payload))
	res, err := s.background.hookClient.Do(req)
	if err != nil {
		if errors.Is(err, errPrivate) {
			return store.Outcome{Status: errPrivate.Error()}, err
		}
		return store.Outcome{Status: notReached}, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxResponse)
	o = store.Outcome{Status: "answered " + strconv.Itoa(res.StatusCode), OK: res.StatusCode/100 == 2,
		Gone: res.StatusCode == http.StatusGone}
	if !o.OK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return o, err
}

// maxResponse limits how many bytes are read from the headers of a receiver's response, and how
// many from its body.
const maxResponse = 64 << 10

// signatures returns a signature for each secret.
func signatures(secrets [][]byte, id, stamp string, payload []byte) string {
	var all []string
	for _, secret := range secrets {
		all = append(all, signature(secret, id, stamp, payload))
	}
	return strings.Join(all, " ")
}

// signature returns a v1 signature of Standard Webhooks: base64 of HMAC-SHA256 over ID, time and
// body.
func signature(secret []byte, id, stamp string, payload []byte) string {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s.%s.", id, stamp)
	h.Write(payload)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

var errPrivate = errors.New("the address is not public")

// newHookClient returns a client that refuses to connect to an address that is not public, unless
// the operator allows it. It checks the address to which the host name was resolved.
func newHookClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: receiverTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		if allowPrivate {
			return nil
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil || !auth.IsPublic(at.Addr()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: receiverTimeout,
			MaxIdleConns: 100, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse,
			DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
