package cloudtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/minio/crc64nvme"

	"snap"
	"snap/api"
)

// Push pushes content as a snapshot of target with this client, and returns the snapshot as the API
// lists it.
func (c *Cloud) Push(client *api.Client, target string, content []byte) api.Snapshot {
	c.t.Helper()
	return c.PushAs(client, target, snap.TypeSnapshot, content)
}

// PushAs is like Push, with a type.
func (c *Cloud) PushAs(client *api.Client, target string, kind snap.Type, content []byte) api.Snapshot {
	c.t.Helper()
	return c.PushCertified(client, target, kind, content, nil)
}

// PushCertified is like PushAs, with a certificate, which may be nil.
func (c *Cloud) PushCertified(client *api.Client, target string, kind snap.Type, content []byte,
	certificate json.RawMessage) api.Snapshot {
	c.t.Helper()
	ctx := context.Background()
	sum := sha256.Sum256(content)
	plan, err := client.Push(ctx, api.PushRequest{
		Target: target, Name: snap.SnapshotName(target, time.Now()), Type: kind, Engine: snap.SQLite,
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Certificate: certificate,
	})
	if err != nil {
		c.t.Fatalf("begin a push: %v", err)
	}
	for number := 1; number <= plan.Parts; number++ {
		from := int64(number-1) * plan.PartSize
		c.PutPart(client, plan.ID, number, content[from:min(from+plan.PartSize, int64(len(content)))])
	}
	done, err := client.Complete(ctx, plan.ID)
	if err != nil {
		c.t.Fatalf("complete a push: %v", err)
	}
	return done
}

// PutPart sends one part of a push that was started.
func (c *Cloud) PutPart(client *api.Client, id string, number int, part []byte) {
	c.t.Helper()
	crc := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(part)))
	signed, err := client.Parts(context.Background(), id,
		api.PartsRequest{Parts: []api.PartSpec{{Number: number, CRC64: crc}}})
	if err != nil {
		c.t.Fatalf("sign part %d: %v", number, err)
	}
	u := signed.URLs[0]
	req, err := http.NewRequest(u.Method, u.URL, bytes.NewReader(part))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range u.Headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("put part %d: %v", number, err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		c.t.Fatalf("put part %d: status %d", number, res.StatusCode)
	}
}
