package local

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// holder returns a machine with an identity and a storage profile. If id is nil, it has no
// identity.
func holder(t *testing.T, rawURL string, id *age.X25519Identity) *Agent {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("storage_profiles:\n  backups: {url: %q}\n", rawURL)
	if id != nil {
		key := filepath.Join(dir, "key.txt")
		if err := os.WriteFile(key, []byte(id.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("identities: [%q]\n", key)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(Options{ConfigFile: file, DataDir: filepath.Join(dir, "data"),
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestDeltasOfEncryptedSnapshots checks that an encrypted snapshot is pushed as a whole file, and
// that a machine that can decrypt it pulls only the changes. A machine without the key pulls the
// whole file. Both get the same file.
func TestDeltasOfEncryptedSnapshots(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"service", "service with s3", "profile"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			id, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			rawURL := "file://" + t.TempDir()
			var options cloudtest.Options
			if place == "service with s3" {
				options.BlobURL = servertest.S3(t)
			}
			client := cloudtest.Start(t, options).As("alice@acme.test")
			here, there, blind := holder(t, rawURL, id), holder(t, rawURL, id), holder(t, rawURL, nil)
			source := addVisits(t, here)
			push := func(a *Agent) (PushResult, error) {
				if place == "profile" {
					return a.PushProfile(t.Context(), "", "visits", PushOptions{}, nil)
				}
				return a.Push(t.Context(), client, "visits", PushOptions{}, nil)
			}
			pull := func(a *Agent) PullResult {
				t.Helper()
				var pulled PullResult
				if place == "profile" {
					pulled, err = a.PullProfile(t.Context(), "", "visits", PullOptions{}, nil)
				} else {
					pulled, err = a.Pull(t.Context(), client, "visits", PullOptions{}, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				return pulled
			}
			before, o := "", BuildOptions{Encrypt: Encryption{To: []string{id.Recipient().String()}}}
			for night := range 3 {
				if night == 2 {
					run(t, source, `UPDATE visit SET token = 'new' WHERE id % 500 = 7;
						INSERT INTO visit SELECT id + 10000, hex(randomblob(20)) FROM visit WHERE id < 50`)
				}
				built, err := here.Build(t.Context(), "visits", o, nil)
				if err != nil || built.Encrypted != 1 {
					t.Fatalf("built %+v, %v", built, err)
				}
				pushed, err := push(here)
				if err != nil {
					t.Fatal(err)
				}
				if pushed.Base != before || pushed.Moved < built.Size || pushed.Moved > built.Size*6/5 ||
					pushed.Unchanged != (night == 1) {
					t.Errorf("night %d: pushed %+v of %d bytes, base %s", night, pushed, built.Size, before)
				}
				before = built.Name
				pulled := pull(there)
				most := [3]int64{built.Size, 64 << 10, built.Size / 5}[night]
				if pulled.Moved > most || pulled.Moved == 0 {
					t.Errorf("night %d: pulled %d bytes of %d, want at most %d", night, pulled.Moved, built.Size, most)
				}
				whole := pull(blind)
				if whole.Moved != built.Size {
					t.Errorf("night %d: without the key, %d bytes of %d are pulled", night, whole.Moved, built.Size)
				}
				for _, got := range []PullResult{pulled, whole} {
					if got.Snapshot.SHA256 != built.SHA256 || got.Snapshot.Encrypted != 1 {
						t.Errorf("night %d: pulled %+v, built %+v", night, got.Snapshot, built)
					}
				}
				if _, err := there.Verify(t.Context(), built.Name, nil); err != nil {
					t.Errorf("night %d: %v", night, err)
				}
				_, err = blind.openVerified(t.Context(), whole.Snapshot, nil)
				if snap.CodeOf(err) != snap.CodeNoIdentity {
					t.Errorf("night %d: a machine without the key opens it: %v", night, err)
				}
			}
		})
	}
}

// TestDeltaFromAnOlderUnencryptedBase checks that a newer encrypted snapshot on the machine, from
// which the service cannot make a delta, does not cause a pull of the whole file.
func TestDeltaFromAnOlderUnencryptedBase(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	client := cloudtest.Start(t, cloudtest.Options{}).As("alice@acme.test")
	here, there := holder(t, "file://"+t.TempDir(), id), holder(t, "file://"+t.TempDir(), id)
	addVisits(t, here)
	for n, encryption := range []Encryption{{}, {To: []string{id.Recipient().String()}}, {}} {
		built, err := here.Build(t.Context(), "visits", BuildOptions{Encrypt: encryption}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = here.Push(t.Context(), client, "visits", PushOptions{Full: true}, nil); err != nil {
			t.Fatal(err)
		}
		pulled, err := there.Pull(t.Context(), client, "visits", PullOptions{}, nil)
		if err != nil || pulled.Snapshot.SHA256 != built.SHA256 {
			t.Fatalf("%+v, %v", pulled, err)
		}
		if n == 2 && pulled.Moved > 64<<10 {
			t.Errorf("pulled %d bytes of %d", pulled.Moved, built.Size)
		}
	}
}

// addVisits adds the target visits to an agent, and returns the file of its source, which has 9,000
// random rows.
func addVisits(t *testing.T, a *Agent) (source string) {
	t.Helper()
	source = filepath.Join(t.TempDir(), "source.db")
	run(t, source, `CREATE TABLE visit (id INTEGER PRIMARY KEY, token TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
		INSERT INTO visit SELECT i, hex(randomblob(20)) FROM n`)
	if err := a.AddTarget(Target{Name: "visits", Source: "sqlite://" + source}); err != nil {
		t.Fatal(err)
	}
	return source
}
