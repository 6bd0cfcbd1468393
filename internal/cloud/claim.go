package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"snap"
	"snap/internal/blob"
	"snap/internal/store"
)

// claimKey is the object that names the service that owns an object store.
const claimKey = "snapcloud.service.json"

// claimTimeout is how long a start waits for an object store that does not answer.
const claimTimeout = 5 * time.Second

// storageOwner is the content of the object claimKey.
type storageOwner struct {
	Service   string    `json:"service"` // the same in all replicas, and after a restore
	PublicURL string    `json:"public_url"`
	Since     time.Time `json:"since"`
}

// claim is an object store and the service that claims it.
type claim struct {
	blobs blob.Store
	owner storageOwner
}

// claim records this service as the owner of the object store. It fails when another service owns
// it: two services with one object store would each remove the other's uploads as abandoned.
func (s *Service) claim(ctx context.Context) error {
	owner := storageOwner{s.transfers.id, s.config.PublicURL, s.now().UTC()}
	return claim{s.transfers.blobs, owner}.acquire(ctx)
}

func (c claim) acquire(ctx context.Context) error {
	found, err := c.read(ctx)
	if errors.Is(err, snap.ErrNotFound) {
		if err = c.write(ctx); err == nil { // another service may have written at the same time
			found, err = c.read(ctx)
		}
	}
	if err != nil {
		return err
	}
	return c.compare(found)
}

// check is like acquire, but does not write.
func (c claim) check(ctx context.Context) error {
	found, err := c.read(ctx)
	if errors.Is(err, snap.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.compare(found)
}

// compare fails with code usage when the owner that was found is another service.
func (c claim) compare(found storageOwner) error {
	if found.Service == c.owner.Service {
		return nil
	}
	detail := fmt.Sprintf("the object store belongs to another service, at %s", found.PublicURL)
	if found.PublicURL == c.owner.PublicURL {
		detail = fmt.Sprintf("the object store belongs to an earlier service at %s that used another database",
			found.PublicURL)
	}
	return snap.Usage(detail,
		"if that service still exists, give each service its own bucket or prefix in blob.url, or its own data_dir; "+
			"if its database is lost and has no backup, run `snapcloud claim --from "+found.PublicURL+"` "+
			"with this configuration")
}

// takeOver makes this service the owner of the object store. The parameter from must be the public
// URL of the current owner.
func (c claim) takeOver(ctx context.Context, from string) error {
	found, err := c.read(ctx)
	if errors.Is(err, snap.ErrNotFound) || err == nil && found.Service == c.owner.Service {
		return snap.Usage("the object store belongs to no other service", "start this service: it needs no claim")
	}
	if err != nil {
		return err
	}
	if strings.TrimRight(from, "/") != found.PublicURL {
		return snap.Usage(fmt.Sprintf("the object store belongs to the service at %s and not to one at %s",
			found.PublicURL, from), "check blob.url and data_dir, then name the service that this one replaces")
	}
	return c.write(ctx)
}

func (c claim) read(ctx context.Context) (storageOwner, error) {
	var owner storageOwner
	text, err := c.blobs.Read(ctx, claimKey)
	if err == nil {
		if err := json.Unmarshal(text, &owner); err != nil {
			return owner, fmt.Errorf("read %s: %w", claimKey, err)
		}
	}
	return owner, err
}

func (c claim) write(ctx context.Context) error {
	text, err := json.Marshal(c.owner)
	if err != nil {
		return err
	}
	return c.blobs.Write(ctx, claimKey, text)
}

// Claim makes the service with this store the owner of the configuration's object store. The
// parameter from is the public URL of the former owner, whose database is lost. The former owner
// must never run again. Its objects remain, but no snapshot of this service refers to them.
func Claim(ctx context.Context, st *store.Store, c Config, from string) error {
	secret, err := st.URLSecret(ctx)
	if err != nil {
		return err
	}
	blobs, err := OpenBlobs(ctx, c)
	if err != nil {
		return err
	}
	return claim{blobs, storageOwner{serviceID(secret), c.PublicURL, st.Now().UTC()}}.takeOver(ctx, from)
}

// CheckOwner fails with code usage when the object store belongs to a service other than the one
// with this [store.Store.URLSecret]. It changes nothing.
func CheckOwner(ctx context.Context, blobs blob.Store, secret []byte) error {
	return claim{blobs: blobs, owner: storageOwner{Service: serviceID(secret)}}.check(ctx)
}

// serviceID returns the identifier of this service. It is derived from the secret "urls" of the
// database, so it is the same in all replicas.
func serviceID(secret []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("service"))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// claimAtStart claims the object store, and fails when another service owns it. If the object store
// does not answer, the service starts anyway, and claims it before removing unknown uploads.
func (s *Service) claimAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := s.claim(ctx)
	if snap.CodeOf(err) == snap.CodeUnavailable || errors.Is(err, context.DeadlineExceeded) {
		s.log.WarnContext(ctx, "the object store does not answer; the service starts without it", "error", err)
		return nil
	}
	return err
}
