package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"snap"
)

// claimKey is the object that says whose a storage is.
const claimKey = "snapcloud.service.json"

// claimPatience is how long a start waits for a storage that does not answer.
const claimPatience = 5 * time.Second

// storageOwner is what stands in it.
type storageOwner struct {
	Service   string    `json:"service"` // the same in all replicas, and after a restore
	PublicURL string    `json:"public_url"`
	Since     time.Time `json:"since"`
}

// claim writes whose the storage is, and fails when it is another service's.
// Two services in one place would take each other's uploads for abandoned.
func (s *Service) claim(ctx context.Context) error {
	owner, err := s.owner(ctx)
	if errors.Is(err, snap.ErrNotFound) {
		var text []byte
		if text, err = json.Marshal(storageOwner{s.serviceID(), s.config.PublicURL, s.now().UTC()}); err == nil {
			err = s.blobs.Write(ctx, claimKey, text)
		}
		if err == nil { // another service may do the same now
			owner, err = s.owner(ctx)
		}
	}
	if err != nil {
		return err
	}
	if owner.Service != s.serviceID() {
		return snap.Usage(fmt.Sprintf("the storage belongs to another service, the one at %s", owner.PublicURL),
			"give each service a bucket or a prefix of its own in blob.url, or a data_dir of its own; if this service takes the place of that one, remove the object "+claimKey+" from the storage")
	}
	return nil
}

func (s *Service) owner(ctx context.Context) (storageOwner, error) {
	var owner storageOwner
	text, err := s.blobs.Read(ctx, claimKey)
	if err == nil {
		if err := json.Unmarshal(text, &owner); err != nil {
			return owner, fmt.Errorf("read %s: %w", claimKey, err)
		}
	}
	return owner, err
}

// serviceID tells this service from others. It follows the database, so that
// replicas share it.
func (s *Service) serviceID() string {
	h := hmac.New(sha256.New, s.urlKey)
	h.Write([]byte("service"))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// claimAtStart refuses to start in another service's storage. One that does
// not answer now is asked again before anything of it is collected.
func (s *Service) claimAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	err := s.claim(ctx)
	if snap.CodeOf(err) == snap.CodeUnavailable || errors.Is(err, context.DeadlineExceeded) {
		s.log.WarnContext(ctx, "the storage does not answer; the service starts without it", "error", err)
		return nil
	}
	return err
}
