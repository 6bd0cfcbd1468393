package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
)

// TokenSource returns the bearer token for the next request: an API key, or the access token of a
// login session. refused is the token that the service rejected, or empty. If it is set, a source
// that can get a new token does so. Any other source returns the same token, and the request fails.
type TokenSource func(ctx context.Context, refused string) (string, error)

// StaticToken returns a source that always returns one API key.
func StaticToken(key string) TokenSource {
	return func(context.Context, string) (string, error) { return key, nil }
}

// Client is the typed client of the cloud API. It is safe for concurrent use.
//
// An error that the service sent is returned as a *snap.Error. If there was no response, the
// *snap.Error has code unreachable, or code interrupted if the context ended.
type Client struct {
	base  string // cloud.url without a trailing slash
	mount string
	token TokenSource
	http  *http.Client
	reads *http.Client // for requests that only read, with a shorter time limit
	agent string
	trace string // a valid traceparent, or empty
	wait  func(context.Context, time.Duration) error
}

// Options configures a [Client].
type Options struct {
	BaseURL   string      // cloud.url; http only on a loopback address
	Mount     string      // MountAgent for API keys, MountUser for access tokens
	Token     TokenSource // nil for the routes that need none
	UserAgent string
	HTTP      *http.Client // nil uses a client with default timeouts
	// ReadTimeout is the time limit of a request that only reads. 0 means 10 seconds.
	ReadTimeout time.Duration
	// TraceParent is the trace that the requests belong to, in the format of W3C Trace Context. An
	// invalid value is not sent.
	TraceParent string
	// Wait pauses before a request is repeated. nil uses [Wait]. If the context ends first, Wait
	// must return the context's error at once.
	Wait func(context.Context, time.Duration) error
}

// New returns a client. It fails with code usage when the URL is invalid.
func New(o Options) (*Client, error) {
	base, err := CheckBaseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	h := &http.Client{Timeout: 60 * time.Second}
	if o.HTTP != nil {
		copied := *o.HTTP
		h = &copied
	}
	// A redirect is not followed, because it could send the credential to another address or
	// unencrypted.
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if o.Wait == nil {
		o.Wait = Wait
	}
	reads := *h
	if limit := cmp.Or(o.ReadTimeout, readTimeout); reads.Timeout == 0 || reads.Timeout > limit {
		reads.Timeout = limit
	}
	return &Client{base: base, mount: o.Mount, token: o.Token, http: h, reads: &reads, agent: o.UserAgent,
		trace: traceParent(o.TraceParent), wait: o.Wait}, nil
}

// traceParent returns text if it has the form of a traceparent of version 00 (W3C Trace Context,
// section 3.2), otherwise "".
func traceParent(text string) string {
	parts := strings.Split(text, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 ||
		strings.Trim(text, "0123456789abcdef-") != "" {
		return ""
	}
	return text
}

// CheckBaseURL returns the URL of a service without its trailing slash. It refuses plain http
// except on loopback, because a credential would be sent unencrypted.
func CheckBaseURL(raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case raw == "":
		return "", snap.Usage("no cloud service is configured",
			"sign in with `snapcli login https://cloud.example`, or set cloud.url or SNAPCLI_CLOUD__URL")
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "":
		return "", snap.Usage(fmt.Sprintf("%q is not the URL of a cloud service", raw),
			"use one like https://cloud.example")
	case strings.Contains(u.Path+"/", "/api/v1/"):
		return "", snap.Usage(fmt.Sprintf("%q is an address of the API, not of the service", raw),
			"remove /api/v1 and everything after it")
	case u.Scheme == "http" && !snap.IsLoopback(u.Hostname()):
		return "", snap.Usage(fmt.Sprintf("credentials sent to %s would not be encrypted", raw),
			"use https://")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// BaseURL returns the service's URL.
func (c *Client) BaseURL() string { return c.base }

// Snapshots returns one page of the snapshots that the caller may see, newest first.
func (c *Client) Snapshots(ctx context.Context, o ListOptions) (SnapshotPage, error) {
	return call[SnapshotPage](ctx, c, http.MethodGet, "/snapshots"+o.query(), nil)
}

// Versions returns the snapshots of the organization, target and type of s among the n newest of
// that target and type that the caller may see, newest first. Targets of other organizations can
// have the same name.
func (c *Client) Versions(ctx context.Context, s Snapshot, n int) ([]Snapshot, error) {
	o := ListOptions{Target: s.Target, Type: s.Type, Limit: n}
	if s.Received {
		o.Filter = snap.FilterReceived
	}
	page, err := c.Snapshots(ctx, o)
	return slices.DeleteFunc(page.Items, func(v Snapshot) bool { return v.Organization != s.Organization }), err
}

// Count is how many snapshots a listing has.
type Count struct {
	Count int  `json:"count"`
	More  bool `json:"more" doc:"there are more snapshots than count: counting stops at 100,000, or sooner if filtered"`
}

// CountSnapshots returns how many snapshots the listing has on all its pages. It ignores the limit
// and the cursor.
func (c *Client) CountSnapshots(ctx context.Context, o ListOptions) (Count, error) {
	o.Limit, o.Cursor = 0, ""
	return call[Count](ctx, c, http.MethodGet, "/snapshots/count"+o.query(), nil)
}

// query returns the query of the URL, with its question mark, or "".
func (o ListOptions) query() string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("filter", string(o.Filter))
	set("target", o.Target)
	set("type", string(o.Type))
	set("q", o.Q)
	set("id_prefix", o.IDPrefix)
	set("ids", strings.Join(o.IDs, ","))
	set("cursor", o.Cursor)
	set("owner", o.Owner)
	set("since", stamp(o.Since))
	set("until", stamp(o.Until))
	if o.ExpiresSoon {
		set("expires_soon", "true")
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// AllSnapshots yields every snapshot that o selects, fetching page after page. It stops after the
// first error.
func (c *Client) AllSnapshots(ctx context.Context, o ListOptions) iter.Seq2[Snapshot, error] {
	pages := Pages(o.Cursor, func(cursor string) (SnapshotPage, string, error) {
		o.Cursor = cursor
		page, err := c.Snapshots(ctx, o)
		return page, page.NextCursor, err
	})
	return rows(pages, func(page SnapshotPage) []Snapshot { return page.Items })
}

// Resolve returns the one visible snapshot whose ID begins with the typed text. It fails with
// not_found when there is none; the hint may then name a similar one. It fails with usage when only
// snap_ was typed, or when several match; the error then names up to five of them.
func (c *Client) Resolve(ctx context.Context, typed string) (Snapshot, error) {
	prefix, ok := snap.CleanIDPrefix(typed)
	if strings.ToLower(strings.TrimSpace(typed)) == snap.IDPrefix {
		return Snapshot{}, snap.Usage(fmt.Sprintf("every snapshot ID begins with %q", typed),
			"an ID looks like snap_7h2k9m4cq8w1x5yz; type some of the characters after snap_")
	}
	if !ok {
		return Snapshot{}, c.unresolved(ctx, typed)
	}
	page, err := c.Snapshots(ctx, ListOptions{IDPrefix: prefix, Limit: 5})
	if err != nil {
		return Snapshot{}, err
	}
	switch len(page.Items) {
	case 0:
		return Snapshot{}, c.unresolved(ctx, typed)
	case 1:
		return page.Items[0], nil
	}
	var ids []string
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return Snapshot{}, snap.Usage(fmt.Sprintf("several snapshot IDs begin with %q: %s", typed,
		strings.Join(ids, ", ")), "type more characters of the ID that you mean")
}

// unresolved returns the error for a typed prefix that no visible ID begins with. If one of the
// newest visible snapshots has the typed text as its name, or an ID that begins similarly, the hint
// names that snapshot.
func (c *Client) unresolved(ctx context.Context, typed string) error {
	page, err := c.Snapshots(ctx, ListOptions{Limit: DefaultLimit})
	if err != nil {
		return snap.ErrNotFound // the suggestion is optional
	}
	code := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(typed)), snap.IDPrefix)
	byPrefix := map[string]Snapshot{}
	var prefixes []string
	for _, s := range page.Items {
		if strings.EqualFold(s.Name, typed) {
			return errDidYouMean(s)
		}
		prefix := strings.TrimPrefix(s.ID, snap.IDPrefix)
		prefix = prefix[:min(len(prefix), len(code))]
		byPrefix[prefix], prefixes = s, append(prefixes, prefix)
	}
	if len(code) < 5 {
		return snap.ErrNotFound
	}
	if s, ok := byPrefix[snap.ClosestWithin(code, prefixes, len(code)/5)]; ok {
		return errDidYouMean(s)
	}
	return snap.ErrNotFound
}

// errDidYouMean returns ErrNotFound with a hint that names the closest snapshot.
func errDidYouMean(s Snapshot) error {
	e := *snap.ErrNotFound
	e.Hint = fmt.Sprintf("did you mean %s (%s)?", s.ID, s.Name)
	return &e
}

// Snapshot returns one snapshot, with the actions that the caller may take on it.
func (c *Client) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	return call[Snapshot](ctx, c, http.MethodGet, snapshotPath(id, ""), nil)
}

// Card returns a page of a snapshot's card, with the tables and columns that q finds. Pages are
// numbered from 1.
func (c *Client) Card(ctx context.Context, id, q string, page int) (SnapshotCard, error) {
	query := url.Values{"page": {strconv.Itoa(max(1, page))}}
	if q != "" {
		query.Set("q", q)
	}
	return call[SnapshotCard](ctx, c, http.MethodGet, snapshotPath(id, "/card?"+query.Encode()), nil)
}

// PutCard stores the card of a snapshot that the caller pushed or may describe.
func (c *Client) PutCard(ctx context.Context, id string, r PutCardRequest) error {
	return c.do(ctx, http.MethodPost, snapshotPath(id, "/card"), r, nil)
}

// RemoveCard removes the card of a snapshot that the caller pushed or may describe.
func (c *Client) RemoveCard(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, "/card"), nil, nil)
}

// CardChanges compares a snapshot's card with that of the previous snapshot.
func (c *Client) CardChanges(ctx context.Context, id string) (CardChanges, error) {
	return call[CardChanges](ctx, c, http.MethodGet, snapshotPath(id, "/changes"), nil)
}

// Describe replaces a snapshot's description and labels.
func (c *Client) Describe(ctx context.Context, id string, r DescribeRequest) (Snapshot, error) {
	return call[Snapshot](ctx, c, http.MethodPost, snapshotPath(id, "/about"), r)
}

// Pulls lists who pulled a snapshot. Only its owner and the organization's owners and admins may
// call it.
func (c *Client) Pulls(ctx context.Context, id string) ([]PullCount, error) {
	list, err := call[PullCounts](ctx, c, http.MethodGet, snapshotPath(id, "/pulls"), nil)
	return list.Items, err
}

// Delete deletes a snapshot and its bytes. Only owners and admins may call it.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, ""), nil, nil)
}

// Push begins a push. If the caller has already begun or completed the same push, Push returns the
// plan of that push. Push leaves out the certificate if the service is too old to support
// certificates.
func (c *Client) Push(ctx context.Context, r PushRequest) (UploadPlan, error) {
	plan, err := call[UploadPlan](ctx, c, http.MethodPost, "/snapshots", r)
	unsupported := snap.FieldError{Field: "certificate", Detail: "unexpected property"}
	if e, ok := errors.AsType[*snap.Error](err); ok && slices.Contains(e.Fields, unsupported) {
		r.Certificate = nil
		return call[UploadPlan](ctx, c, http.MethodPost, "/snapshots", r)
	}
	return plan, err
}

// Parts returns upload URLs for the parts in r or, if r names none, the parts that are already
// stored.
func (c *Client) Parts(ctx context.Context, id string, r PartsRequest) (PartsResponse, error) {
	return call[PartsResponse](ctx, c, http.MethodPost, snapshotPath(id, "/parts"), r)
}

// PushDelta announces a delta for a push that was begun. It fails with not_found if the base is not
// available to the caller, and also if the service is too old to support deltas.
func (c *Client) PushDelta(ctx context.Context, id string, r DeltaPush) (DeltaUpload, error) {
	return call[DeltaUpload](ctx, c, http.MethodPost, snapshotPath(id, "/delta"), r)
}

// PullDelta asks for a delta of a snapshot. It fails with not_found if the service is too old to
// support deltas.
func (c *Client) PullDelta(ctx context.Context, id string, r DeltaRequest) (DeltaOffer, error) {
	return call[DeltaOffer](ctx, c, http.MethodPost, snapshotPath(id, "/pull-delta"), r)
}

// Complete completes a push. The snapshot is listed from then on.
func (c *Client) Complete(ctx context.Context, id string) (Snapshot, error) {
	return call[Snapshot](ctx, c, http.MethodPost, snapshotPath(id, "/complete"), nil)
}

// Pull returns a presigned URL of the snapshot's bytes. Call it again when the URL has expired.
func (c *Client) Pull(ctx context.Context, id string) (PullResponse, error) {
	return call[PullResponse](ctx, c, http.MethodPost, snapshotPath(id, "/pull"), nil)
}

// ShareWith shares a snapshot with all of these recipients or, if that fails, with none of them.
// confirmed states that a person agreed to share data that is not sanitized.
func (c *Client) ShareWith(ctx context.Context, id string, with SharesRequest, confirmed bool) (ShareChanges, error) {
	return call[ShareChanges](ctx, c, http.MethodPost, snapshotPath(id, "/shares"+confirmQuery(confirmed)), with)
}

// confirmQuery returns the query that confirms a share of data that is not sanitized.
func confirmQuery(confirmed bool) string {
	if confirmed {
		return "?confirm_unsanitized=true"
	}
	return ""
}

// UnshareFrom ends all of these shares, or none.
func (c *Client) UnshareFrom(ctx context.Context, id string, from UnshareRequest) (ShareChanges, error) {
	return call[ShareChanges](ctx, c, http.MethodPost, snapshotPath(id, "/unshare"), from)
}

// Share shares a snapshot org-wide. It is idempotent.
func (c *Client) Share(ctx context.Context, id string) (Snapshot, error) {
	return call[Snapshot](ctx, c, http.MethodPost, snapshotPath(id, "/share"), nil)
}

// Unshare ends the org-wide share immediately.
func (c *Client) Unshare(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, "/share"), nil, nil)
}

// ShareGroup shares a snapshot with an SSO group, by its ID.
func (c *Client) ShareGroup(ctx context.Context, id, groupID string) (GroupShare, error) {
	return call[GroupShare](ctx, c, http.MethodPost, snapshotPath(id, "/share-group"),
		ShareGroupRequest{GroupID: groupID})
}

// UnshareGroup ends a group share immediately.
func (c *Client) UnshareGroup(ctx context.Context, id, groupID string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, "/share-group/"+url.PathEscape(groupID)), nil, nil)
}

// GroupShares lists the snapshot's group shares.
func (c *Client) GroupShares(ctx context.Context, id string) ([]GroupShare, error) {
	list, err := call[GroupShareList](ctx, c, http.MethodGet, snapshotPath(id, "/group-shares"), nil)
	return list.Items, err
}

// ShareOrg shares a snapshot with another organization, or changes the expiry of that share. With a
// nil expires, the share never ends.
func (c *Client) ShareOrg(ctx context.Context, id, slug string, expires *time.Time) (OrgShare, error) {
	return call[OrgShare](ctx, c, http.MethodPost, snapshotPath(id, "/share-org"),
		ShareOrgRequest{OrgSlug: slug, ExpiresAt: expires})
}

// UnshareOrg ends a cross-org share immediately.
func (c *Client) UnshareOrg(ctx context.Context, id, slug string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, "/share-org/"+url.PathEscape(slug)), nil, nil)
}

// OrgShares lists the snapshot's cross-org shares. Only owners and admins may call it.
func (c *Client) OrgShares(ctx context.Context, id string) ([]OrgShare, error) {
	list, err := call[OrgShareList](ctx, c, http.MethodGet, snapshotPath(id, "/org-shares"), nil)
	return list.Items, err
}

// Groups lists the organization's SSO groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	list, err := call[GroupList](ctx, c, http.MethodGet, "/org/sso/groups", nil)
	return list.Items, err
}

// Members lists the organization's users.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	list, err := call[MemberList](ctx, c, http.MethodGet, "/org/members", nil)
	return list.Items, err
}

// Me returns who the caller is.
func (c *Client) Me(ctx context.Context) (Me, error) {
	return call[Me](ctx, c, http.MethodGet, "/me", nil)
}

// Uploads lists the caller's unfinished pushes.
func (c *Client) Uploads(ctx context.Context) ([]Upload, error) {
	list, err := call[UploadList](ctx, c, http.MethodGet, "/uploads", nil)
	return list.Items, err
}

// AbortUpload ends one of the caller's unfinished pushes and removes its bytes.
func (c *Client) AbortUpload(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/uploads/"+url.PathEscape(id), nil, nil)
}

// Keys lists the caller's API keys or, with f.All, those of the organization.
func (c *Client) Keys(ctx context.Context, f KeyFilter) ([]Key, error) {
	q := url.Values{}
	if f.All {
		q.Set("all", "true")
	}
	if f.Idle > 0 {
		q.Set("idle_for", strconv.FormatInt(int64(f.Idle/time.Second), 10))
	}
	path := "/keys"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	list, err := call[KeyList](ctx, c, http.MethodGet, path, nil)
	return list.Items, err
}

// NewKey creates an API key. Only this response contains the key's secret.
func (c *Client) NewKey(ctx context.Context, r KeyRequest) (NewKey, error) {
	return call[NewKey](ctx, c, http.MethodPost, "/keys", r)
}

// RevokeKey revokes an API key immediately.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/keys/"+url.PathEscape(id), nil, nil)
}

// Sessions lists the caller's sessions.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	list, err := call[SessionList](ctx, c, http.MethodGet, "/sessions", nil)
	return list.Items, err
}

// EndSession signs out a device or browser immediately: one of the caller's or, for owners and
// admins, of anybody in the organization.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/sessions/"+url.PathEscape(id), nil, nil)
}

// AuthConfig returns where to sign in. It needs no credential. If the service's URL has a path and
// nothing is found below it, AuthConfig fails with code usage: the URL is that of a page.
func (c *Client) AuthConfig(ctx context.Context) (AuthConfig, error) {
	var out AuthConfig
	_, err := c.exchange(ctx, http.MethodGet, c.base+PathAuthConfig, "", nil, &out)
	if u, parseErr := url.Parse(c.base); parseErr == nil && u.Path != "" && snap.CodeOf(err) == snap.CodeNotFound {
		return out, snap.Usage(fmt.Sprintf("%s is the URL of a page, not of a cloud service", c.base),
			fmt.Sprintf("use the URL without a path: %s://%s", u.Scheme, u.Host))
	}
	return out, err
}

func snapshotPath(id, rest string) string { return "/snapshots/" + url.PathEscape(id) + rest }

func call[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var out T
	err := c.do(ctx, method, path, in, &out)
	return out, err
}

// do sends one request below the mount. If the service rejects the token, do gets another one from
// the source and tries once more.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	if c.token == nil {
		return &snap.Error{Code: snap.CodeNotSignedIn, Detail: "you are not signed in", Hint: "run `snapcli login`"}
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
	}
	token, err := c.token(ctx, "")
	if err != nil {
		return err
	}
	status, err := c.exchange(ctx, method, c.base+c.mount+path, token, body, out)
	if status != http.StatusUnauthorized {
		return err
	}
	fresh, sourceErr := c.token(ctx, token)
	if sourceErr != nil {
		return sourceErr
	}
	if fresh == token {
		return err
	}
	_, err = c.exchange(ctx, method, c.base+c.mount+path, fresh, body, out)
	return err
}

// maxResponse limits how many bytes are read from one response.
const maxResponse = 32 << 20

// exchange sends a request with a token and reads the response. After a temporary failure, it
// sends the request again if that is safe. If a request that only reads got no response in time,
// exchange sends it once more.
func (c *Client) exchange(ctx context.Context, method, target, token string, body []byte, out any) (
	status int, err error) {
	send := func() (int, error) {
		return c.retry(ctx, repeatable(method, target),
			func() (int, error) { return c.send(ctx, method, target, token, body, out) })
	}
	status, err = send()
	if method != http.MethodGet || ctx.Err() != nil || !timedOut(err) {
		return status, err
	}
	c.reads.CloseIdleConnections() // the next connection may reach another replica
	return send()
}

func (c *Client) send(ctx context.Context, method, target, token string, body []byte, out any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if c.trace != "" {
		req.Header.Set("Traceparent", c.trace)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := c.http
	if method == http.MethodGet {
		client = c.reads
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, markDisconnected(c.unreachable(ctx, err), err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return 0, markDisconnected(c.unreachable(ctx, err), err)
	}
	if res.StatusCode >= 300 {
		return res.StatusCode, markUnavailable(res, problem(res, data))
	}
	if out == nil || len(data) == 0 {
		return res.StatusCode, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return res.StatusCode, errNotTheService(c.base, res.StatusCode)
	}
	return res.StatusCode, nil
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &snap.Error{Code: snap.CodeInterrupted, Cause: context.Cause(ctx)}
	}
	return Unreachable(c.base, err)
}

// problem rebuilds the error that the service sent. A response that is not a problem document did
// not come from the service itself.
func problem(res *http.Response, data []byte) error {
	var p Problem
	if json.Unmarshal(data, &p) != nil || p.Code == "" {
		return errNotTheService(res.Request.URL.Scheme+"://"+res.Request.URL.Host, res.StatusCode)
	}
	return &snap.Error{Code: p.Code, Detail: snap.CleanText(p.Detail), Hint: snap.CleanText(p.Hint), Fields: p.Errors,
		RequestID: p.RequestID}
}

func errNotTheService(base string, status int) error {
	code := snap.CodeUnreachable
	if status >= 500 {
		code = snap.CodeUnavailable
	}
	return &snap.Error{
		Code:   code,
		Detail: fmt.Sprintf("the response from %s is not from the cloud service (status %d)", base, status),
		Hint:   "check cloud.url, and any proxy in between",
	}
}
