package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"snap"
	"snap/internal/auth"
	"snap/internal/disk"
	"snap/internal/signin"
	"snap/internal/store"
)

// Verdict is the result of checking one thing that the service needs.
type Verdict struct {
	What   string
	Detail string
	Err    error
	// Warning is set when the service can start despite Err, and only a part of it does not work.
	Warning bool
	// Unused lists the objects of snapshots to which no row refers.
	Unused []string
}

// maxAhead is the largest accepted difference between the clocks of this machine and of the
// database. It leaves a wide margin: an access token lives ten minutes, and S3 refuses requests
// whose time is off by a quarter of an hour.
const maxAhead = 10 * time.Second

// checkTimeout is the time limit of each check.
const checkTimeout = 20 * time.Second

// Verdicts tests everything that the configuration names: the database and its schema, the key that
// encrypts its signing keys, the clocks of this machine and of running replicas, organizations that
// a start would close, the object store and its owner, the free space of data_dir, the bucket of
// checkpoints, every identity provider, the hosts of webhooks, the SMTP server, and the collector
// of traces. It changes nothing, except that it briefly stores a test object in the object store.
// It does not test the object store while a restore is unfinished.
func Verdicts(ctx context.Context, c Config) []Verdict {
	k := &checkup{ctx: ctx, config: c, verdicts: []Verdict{Configured(c)}}
	seen := k.database()
	if store.CheckRestored(c.StoreOptions()) == nil {
		k.objectStore()
	}
	k.disk()
	k.signIn()
	k.receivers(seen.Webhooks)
	if c.Tracing.Endpoint != "" {
		k.warn("tracing", func(ctx context.Context) (string, error) {
			return "reached " + c.Tracing.Endpoint, reach(ctx, http.DefaultClient, c.Tracing.endpoint())
		})
	}
	return k.verdicts
}

// checkup collects the verdicts of the checks that it runs.
type checkup struct {
	ctx      context.Context
	config   Config
	verdicts []Verdict
	service  string // ID of the service; empty if it could not be read
}

// check runs one check and adds its verdict.
func (k *checkup) check(what string, try func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(k.ctx, checkTimeout)
	defer cancel()
	v := Verdict{What: what}
	if v.Detail, v.Err = try(ctx); v.Err != nil {
		v.Detail = v.Err.Error()
	}
	k.verdicts = append(k.verdicts, v)
}

// warn is like check, but a failure is only a warning.
func (k *checkup) warn(what string, try func(context.Context) (string, error)) {
	k.check(what, try)
	k.last().Warning = k.last().Err != nil
}

func (k *checkup) last() *Verdict { return &k.verdicts[len(k.verdicts)-1] }

// database checks the database and the key that encrypts its signing keys, the clocks, and the
// organizations that the next start would close.
func (k *checkup) database() (seen store.Inspection) {
	k.check("database", func(ctx context.Context) (detail string, err error) {
		seen, err = store.Inspect(ctx, k.config.StoreOptions())
		return schemaDetail(seen), cmp.Or(err, seen.Refusal)
	})
	if k.last().Err == nil {
		if seen.Schema == 0 || seen.Schema >= seen.Newest {
			k.service = serviceID(seen.URLSecret)
		}
		if seen.AuditKey != nil {
			k.check("keys", func(context.Context) (string, error) {
				sealer, err := auth.NewSealer(k.config.Auth.KeyEncryptionKey)
				if err != nil {
					return "", err
				}
				return "the signing keys can be read", sealer.Check(seen.SigningKeys, seen.AuditKey)
			})
		}
		k.check("clock", func(context.Context) (string, error) { return clockDetail(k.config, seen) })
		if seen.Skew > maxSkew {
			k.warn("replicas", func(context.Context) (string, error) { return "", errSkew(seen.Skew) })
		}
	}
	if closed := unlisted(k.config, seen.Orgs); len(closed) > 0 {
		k.warn("organizations", func(context.Context) (string, error) {
			return "", fmt.Errorf("missing from the configuration, so the next start closes them: %s",
				strings.Join(closed, ", "))
		})
	}
	return seen
}

// objectStore checks the object store and the bucket of checkpoints.
func (k *checkup) objectStore() {
	k.check("storage", func(ctx context.Context) (string, error) {
		return "written, read and removed an object", tryStorage(ctx, k.config, k.service)
	})
	if v := k.last(); v.Err != nil {
		v.Detail = explained(v.Err)
		// S3 may be down for a while, but a folder that is not writable is a mistake, as is the object
		// store of another service.
		v.Warning = k.config.Blob.URL != "" && snap.CodeOf(v.Err) != snap.CodeUsage
	}
	if k.config.Audit.Checkpoints != "" {
		k.warn("checkpoints", func(ctx context.Context) (string, error) {
			return "the bucket has object lock", tryCheckpoints(ctx, k.config.Audit)
		})
	}
}

// disk warns if so little of data_dir's disk is free that uploads fail (limits.disk_reserve).
func (k *checkup) disk() {
	free, known := disk.Free(k.config.DataDir)
	if !known || k.config.Database.URL != "" && k.config.Blob.URL != "" {
		return
	}
	k.warn("disk", func(context.Context) (string, error) {
		has := humanize.Bytes(uint64(max(free, 0))) + " free in data_dir"
		if reserve := k.config.Limits.diskReserve(); free < reserve {
			return "", fmt.Errorf("%s, and uploads stop below %s (limits.disk_reserve); free some space", has,
				humanize.Bytes(uint64(reserve)))
		}
		return has, nil
	})
}

// signIn checks every identity provider.
func (k *checkup) signIn() {
	for _, o := range k.config.signInOrganizations() {
		if o.OIDC != nil {
			k.warn("sign-in "+o.Slug, func(ctx context.Context) (string, error) {
				return "discovered " + o.OIDC.Issuer, discover(ctx, *o.OIDC)
			})
		}
	}
}

// receivers checks the hosts of webhooks and the SMTP server.
func (k *checkup) receivers(webhooks []string) {
	for _, base := range webhookHosts(webhooks) {
		k.warn("webhooks", func(ctx context.Context) (string, error) {
			return "reached " + base, reach(ctx, newHookClient(k.config.Webhooks.AllowPrivate), base)
		})
	}
	if k.config.Mail.Server != "" || slices.ContainsFunc(webhooks, isMail) {
		k.warn("mail", func(ctx context.Context) (string, error) {
			return "reached " + k.config.Mail.Server, tryMail(ctx, k.config.Mail)
		})
	}
}

// unlisted returns the slugs that the configuration does not list.
func unlisted(c Config, slugs []string) []string {
	return slices.DeleteFunc(slices.Clone(slugs), func(slug string) bool {
		return slices.ContainsFunc(c.Organizations, func(o Organization) bool { return o.Slug == slug })
	})
}

// Configured returns the verdict on a configuration that was read without errors.
func Configured(c Config) Verdict {
	return Verdict{What: "configuration",
		Detail: snap.Plural(len(c.Organizations), "organization", "organizations") + ", " + c.PublicURL}
}

func schemaDetail(i store.Inspection) string {
	switch {
	case !i.Exists:
		return "does not exist yet; the first start creates it"
	case i.Schema < i.Newest:
		return fmt.Sprintf(
			"reachable; the schema is at %d and the next start, or `snapcloud migrate`, updates it to %d",
			i.Schema, i.Newest)
	case i.Schema > i.Newest:
		return fmt.Sprintf("reachable; the schema is at %d, and this program, which knows %d, can still serve it",
			i.Schema, i.Newest)
	}
	return fmt.Sprintf("reachable, schema %d is up to date", i.Schema)
}

func clockDetail(c Config, i store.Inspection) (string, error) {
	if c.Database.URL == "" {
		return "this machine's, " + time.Now().UTC().Format(time.RFC3339), nil
	}
	if i.Ahead.Abs() > maxAhead {
		return "", fmt.Errorf("the clocks of the database and of this machine differ by %v; synchronize both with a "+
			"time server", i.Ahead.Abs())
	}
	return fmt.Sprintf("%v from the database's", i.Ahead.Abs()), nil
}

// tryStorage tests the object store. It fails if the object store belongs to a service other than
// the one with this ID, unless the ID is empty.
func tryStorage(ctx context.Context, c Config, service string) error {
	blobs, err := OpenBlobs(ctx, c)
	if err != nil {
		return err
	}
	if err := blobs.Ping(ctx); err != nil {
		return err
	}
	if service != "" {
		if err := (claim{blobs, storageOwner{Service: service, PublicURL: c.PublicURL}}).check(ctx); err != nil {
			return err
		}
	}
	key, wrote := "check."+rand.Text(), []byte("snapcloud check")
	if err := blobs.Write(ctx, key, wrote); err != nil {
		return fmt.Errorf("write an object: %w", err)
	}
	read, err := blobs.Read(ctx, key)
	if err == nil && !slices.Equal(read, wrote) {
		err = errors.New("the bytes read differ from the bytes written")
	}
	if err != nil {
		err = fmt.Errorf("read an object: %w", err)
	}
	if removal := blobs.Delete(ctx, key); removal != nil {
		err = errors.Join(err, fmt.Errorf("remove an object: %w", removal))
	}
	return err
}

func discover(ctx context.Context, o signin.OIDC) error {
	provider, err := auth.NewProvider(o.Issuer, o.AllowPrivate, time.Now)
	if err != nil {
		return err
	}
	_, err = provider.Discover(ctx)
	return err
}

// maxHosts is the maximum number of webhook hosts that are tested.
const maxHosts = 20

// webhookHosts returns the hosts that events are sent to, without paths, because a webhook's path
// may hold a secret.
func webhookHosts(urls []string) []string {
	var out []string
	for _, raw := range urls {
		if u, err := url.Parse(raw); err == nil && u.Host != "" { // others are e-mail addresses
			out = append(out, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxHosts)]
}

// reach requests a host's root. Any HTTP response counts as success.
func reach(ctx context.Context, client *http.Client, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, base, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "Head "))
	}
	return res.Body.Close()
}
