package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/limit"
	"snap/internal/loadcontrol"
	"snap/internal/scim"
	"snap/internal/signin"
	"snap/internal/store"
)

// Service is a snapcloud service without its listener.
type Service struct {
	config     Config
	log        *slog.Logger
	now        func() time.Time
	address    func(*http.Request) string // returns the client's address
	store      *store.Store
	auth       *auth.Authenticator
	signin     *signin.Service
	auditKey   auditlog.Key // signs checkpoints of the audit logs
	sealer     *auth.Sealer // encrypts secrets of webhooks; may be nil
	load       *loadcontrol.Control
	transfers  transfers
	telemetry  telemetry
	background background
	web        web
	ready      readiness
}

// transfers holds the components that handle the bytes of snapshots.
type transfers struct {
	blobs     blob.Store
	verifying blob.Tasks   // uploads whose bytes are being verified
	parts     http.Handler // PUT of parts, for the folder store; nil for S3
	deltas    *deltas
	id        string        // identifies this service as the owner of the object store; see serviceID
	urlKey    []byte        // signs URLs of this service; see openURLKey
	recheck   time.Duration // see Options
}

// telemetry holds the metrics, logs and traces of the service.
type telemetry struct {
	metrics  *metrics
	tracing  *tracing // nil when tracing is not configured
	outages  *outages
	jobTimes *jobTimes
}

// background holds the settings and components of the background work and of webhooks.
type background struct {
	collectEvery time.Duration // see Options
	hookClient   *http.Client  // delivers webhooks
	checkpoints  *checkpointBucket
	tests        *limit.Limiter // limits test messages to webhooks
}

// web holds the handlers of the listener and the data that they serve.
type web struct {
	handler      http.Handler
	notFound     http.Handler // the page for "not found"
	authSettings api.AuthConfig
	openAPI      *huma.OpenAPI
	table        []route // every route that needs a caller; tests walk it
}

// Options are settings that are not part of the configuration.
type Options struct {
	Log     *slog.Logger     // nil is slog.Default
	Now     func() time.Time // nil is time.Now
	Version string
	// Recheck is how often the right to a download is checked while its bytes are sent. 0 means a
	// little less than a second, so that a revoked download ends within a second.
	Recheck time.Duration
	// CollectEvery is how often abandoned uploads and obsolete rows are removed; 0 is ten minutes.
	CollectEvery time.Duration
	// Again allows the service to start with this database although its data was moved elsewhere.
	Again bool
}

// New opens the database and the object store, applies the configuration's organizations and local
// users, closes the organizations that the configuration does not list, and returns the service.
// The caller must close the service after the last request.
func New(ctx context.Context, c Config, o Options) (s *Service, err error) {
	useOwnErrors()
	ctx = store.AllowReserve(ctx) // if a full disk prevented the start, nobody could take access away
	s = newService(c, o)
	if s.telemetry.tracing, err = newTracing(ctx, c.Tracing, o.Version, s.log); err != nil {
		return nil, err
	}
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	defer func(opened *store.Store) {
		if err != nil {
			opened.Close()
		}
	}(s.store) // s is nil after an error
	checkMoved := s.store.CheckMoved
	if o.Again {
		checkMoved = s.store.ForgetMove
	}
	if err := errors.Join(s.store.CheckTransferred(ctx), checkMoved(ctx)); err != nil {
		return nil, err
	}
	if err := s.openURLKey(ctx); err != nil {
		return nil, err
	}
	if err := s.openBlobs(ctx); err != nil {
		return nil, err
	}
	s.store.OpenObject = s.transfers.blobs.Open
	if s.transfers.deltas, err = openDeltas(c, s.transfers.blobs, s.now); err != nil {
		return nil, err
	}
	if s.background.checkpoints, err = c.Audit.openCheckpoints(ctx, s.now); err != nil {
		return nil, err
	}
	s.warnUnencrypted(ctx)
	if err := s.claimAtStart(ctx); err != nil {
		return nil, err
	}
	if err := applyOrganizations(ctx, s.store, c); err != nil {
		return nil, err
	}
	limiter := limit.New(s.store.Spend, s.now)
	if err := s.openAuth(ctx, limiter); err != nil {
		return nil, err
	}
	s.load, s.background.tests = s.newControl(limiter), limiter
	if s.web.handler, err = s.build(o.Version); err != nil {
		return nil, err
	}
	s.telemetry.metrics.initRouteSeries(s.web.openAPI.Paths)
	if err := s.applySettings(ctx); err != nil {
		return nil, err
	}
	return s, s.closeUnlisted(ctx)
}

// newService returns a service that has opened nothing yet.
func newService(c Config, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{config: c, log: o.Log, now: o.Now,
		transfers: transfers{recheck: cmp.Or(o.Recheck, 900*time.Millisecond)},
		telemetry: telemetry{metrics: newMetrics(o.Version)},
		background: background{collectEvery: cmp.Or(o.CollectEvery, collectEvery),
			hookClient: newHookClient(c.Webhooks.AllowPrivate)}}
	s.telemetry.outages, s.telemetry.jobTimes = newOutages(o.Log, o.Now), newJobTimes(s)
	return s
}

// openStore opens the database and adds its metrics.
func (s *Service) openStore(ctx context.Context) (err error) {
	at := s.config.StoreOptions()
	if err := store.CheckRestored(at); err != nil {
		return err
	}
	limits := s.config.Limits
	at.Now, at.Watch, at.Quotas, at.Reserve = s.now, s.watchStatement, limits.quotas(), limits.DatabaseReserve()
	if s.store, err = store.Open(ctx, at); err != nil {
		return err
	}
	s.telemetry.metrics.watchPools(s.store)
	s.telemetry.metrics.registry.MustRegister(newUsageCollector(s), newBacklogCollector(s), s.telemetry.jobTimes)
	return nil
}

func (s *Service) openBlobs(ctx context.Context) error {
	if s.config.Blob.URL != "" {
		objects, err := blob.OpenS3Through(ctx, s.config.Blob.URL, s.now, s.watchS3)
		if err != nil {
			return fmt.Errorf("open the object store: %w", err)
		}
		s.transfers.blobs = objects
		s.telemetry.metrics.initS3Series()
		return nil
	}
	dir := filepath.Join(s.config.DataDir, "blobs")
	folder, err := blob.OpenFolder(dir, s.config.PublicURL, s.transfers.urlKey, s.now)
	if err != nil {
		return fmt.Errorf("open the blob folder: %w", err)
	}
	folder.LeaveFree(s.config.Limits.diskReserve())
	folder.OnUnexpected(func(ctx context.Context, err error) { noteError(ctx, err) })
	s.transfers.blobs, s.transfers.parts = folder, folder.Handler()
	return nil
}

// openURLKey derives the key that signs URLs from a secret in the database. With
// auth.key_encryption_key, a copy of the database is not enough to sign URLs.
func (s *Service) openURLKey(ctx context.Context) error {
	secret, err := s.store.URLSecret(ctx)
	if err != nil {
		return err
	}
	sealer, err := auth.NewSealer(s.config.Auth.KeyEncryptionKey)
	if err != nil {
		return err
	}
	s.transfers.id = serviceID(secret)
	s.transfers.urlKey, err = sealer.Bind("urls", secret)
	return err
}

func applyOrganizations(ctx context.Context, st *store.Store, c Config) error {
	for _, o := range c.Organizations {
		p, err := o.policy()
		if err != nil {
			return err
		}
		if _, err := st.ApplyOrg(ctx, o.Slug, o.Name, p); err != nil {
			return fmt.Errorf("apply organization %s: %w", o.Slug, err)
		}
	}
	return nil
}

func (s *Service) openAuth(ctx context.Context, limiter *limit.Limiter) (err error) {
	proxies, err := s.config.proxies()
	if err != nil {
		return err
	}
	sealer, err := auth.NewSealer(s.config.Auth.KeyEncryptionKey)
	if err != nil {
		return err
	}
	if sealer == nil && s.config.Database.URL != "" {
		s.log.WarnContext(ctx,
			"the keys that sign tokens are unencrypted in the database; set auth.key_encryption_key")
	}
	s.sealer, s.address = sealer, auth.ProxiedAddress(proxies)
	s.signin, err = signin.New(ctx, s.store, signin.Options{
		PublicURL: s.config.PublicURL, ClientID: s.config.Auth.ClientID, Audience: s.config.Auth.Audience,
		Organizations: s.config.signInOrganizations(), ListOrganizations: s.config.listsOrganizations(),
		TrustedProxies: proxies, Sealer: sealer, Now: s.now, Log: s.log, Count: s.telemetry.metrics.countLogin,
	})
	if err != nil {
		return fmt.Errorf("start the auth service: %w", err)
	}
	if s.auditKey, err = auth.AuditKey(ctx, s.store, sealer); err != nil {
		return err
	}
	s.web.authSettings = api.AuthConfig{AuthURL: s.signin.Issuer(), ClientID: s.config.Auth.ClientID,
		Scopes: []string{"openid", "offline_access"}, ExchangeURL: s.signin.ExchangeURL()}
	options := auth.Options{
		Issuer: s.signin.Issuer(), Audience: s.config.Auth.Audience, PublicURL: s.config.PublicURL, Sealer: sealer,
		Now: s.now, Proxies: proxies, Log: s.log, Confirm: s.signin.Confirm,
		Limiter: limiter, Failures: limit.Rate(s.config.Limits.FailuresPerAddress),
	}
	if issuer := s.config.Auth.Issuer; issuer != "" {
		s.web.authSettings.AuthURL = issuer
		options.External, err = s.signin.External(issuer, cmp.Or(s.config.Auth.Audience, s.config.PublicURL))
		if err != nil {
			return err
		}
	}
	s.auth = auth.New(s.store, options)
	return nil
}

// build assembles the handler: the API, uploads and downloads, the auth service, health, pages, and
// the response for unknown paths.
func (s *Service) build(version string) (http.Handler, error) {
	mux := http.NewServeMux()
	s.routes(humago.New(mux, s.humaConfig(version)))
	s.completeOpenAPI()
	mux.HandleFunc("GET /openapi.json", s.serveOpenAPI)
	mux.HandleFunc("GET /blobs/{token}", s.serveBytes)
	mux.HandleFunc("GET /blobs/deltas/{token}", s.serveDelta)
	mux.Handle("PUT /blobs/deltas/{token}", s.countUp(http.HandlerFunc(s.receiveDelta)))
	if s.transfers.parts != nil {
		mux.Handle("PUT /blobs/parts/", s.countUp(s.transfers.parts))
	}
	mux.Handle("/auth/", s.signin.Handler())
	mux.Handle("/.well-known/oauth-authorization-server/auth", s.signin.Handler())
	mux.Handle(scim.Prefix, s.scimHandler())
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	if err := errors.Join(s.openPages(mux, version), s.openConsole(mux)); err != nil {
		return nil, fmt.Errorf("open the pages: %w", err)
	}
	return s.wrap(s.load.Wrap(s.requireStorable(s.fallback(mux)))), nil
}

func (s *Service) humaConfig(version string) huma.Config {
	c := huma.DefaultConfig("snapcloud", cmp.Or(version, "dev"))
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", "" // we serve our own pages, which load nothing from other hosts
	c.CreateHooks = nil                                   // no $schema links in responses
	c.RejectUnknownQueryParameters = true                 // a mistyped filter must not list everything
	c.Formats = map[string]huma.Format{"application/json": storableJSON, "json": storableJSON}
	c.Info.Description = "Share database snapshots: private, org-wide, with an SSO group, with another organization."
	c.Servers = []*huma.Server{{URL: s.config.PublicURL}}
	s.web.openAPI = c.OpenAPI
	return c
}

// fallback passes requests to mux, and responds to those that no route matches: with a page to a
// browser, and with a problem document to other clients.
func (s *Service) fallback(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		if allowed := strings.Join(allowedMethods(mux, r), ", "); allowed != "" {
			w.Header().Set("Allow", allowed)
			s.writeError(w, r, &snap.Error{Code: snap.CodeMethodNotAllowed,
				Detail: "this path supports only " + allowed})
			return
		}
		if isPageRequest(r) {
			s.web.notFound.ServeHTTP(w, r)
			return
		}
		s.writeError(w, r, &snap.Error{Code: snap.CodeNotFound, Detail: "nothing exists at this path",
			Hint: "the API is described at /openapi.json"})
	})
}

// isPageRequest reports whether a browser requests a page at a path that is not for programs.
func isPageRequest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/blobs/")
}

// allowedMethods returns the methods that the mux supports at the path of a request.
func allowedMethods(mux *http.ServeMux, r *http.Request) (methods []string) {
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch,
		http.MethodPost, http.MethodPut} {
		probe := *r
		probe.Method = method
		if _, pattern := mux.Handler(&probe); pattern != "" {
			methods = append(methods, method)
		}
	}
	return methods
}

// Handler returns the handler of all requests.
func (s *Service) Handler() http.Handler { return s.web.handler }

// Store returns the store, for the operator's commands and for tests.
func (s *Service) Store() *store.Store { return s.store }

// Auth returns the authenticator, for the operator's commands and for tests.
func (s *Service) Auth() *auth.Authenticator { return s.auth }

// Close sends the remaining traces, removes the folder of deltas and closes the database.
func (s *Service) Close() error {
	return errors.Join(s.telemetry.tracing.close(context.Background()), s.transfers.deltas.close(), s.store.Close())
}
