package local

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// places are the possible locations of a storage profile.
func places() map[string]func(*testing.T) string {
	return map[string]func(*testing.T) string{
		"file": func(t *testing.T) string {
			return (&url.URL{Scheme: "file", Path: filepath.Join(t.TempDir(), "back[up]s")}).String()
		},
		"s3": func(t *testing.T) string { return servertest.S3(t) },
	}
}

// inTwoParts is a size in bytes that is transferred in two parts, see [blob.PartSize].
const inTwoParts = 17 << 20

// withProfile returns an agent with one storage profile, whose URL comes from
// the environment.
func withProfile(t *testing.T, rawURL string) *Agent {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("storage_profiles:\n  backups: {url: \"${BACKUPS}\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(Options{ConfigFile: file, DataDir: filepath.Join(dir, "data"), Env: func(name string) string {
		if name == "BACKUPS" {
			return rawURL
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStorageProfile(t *testing.T) {
	t.Parallel()
	for kind, place := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rawURL := place(t)
			here, there := withProfile(t, rawURL), withProfile(t, rawURL)
			const target = "größe 東京 shop"
			masked := here.made(t, target, snap.TypeSanitized, noon, inTwoParts)
			here.made(t, target, snap.TypeSnapshot, noon.Add(time.Hour), 1000)
			for _, step := range []struct {
				options PushOptions
				moves   bool
			}{{PushOptions{Type: snap.TypeSanitized}, true}, {PushOptions{}, true}, {PushOptions{}, false}} {
				got, err := here.PushProfile(t.Context(), "", target, step.options, nil)
				if err != nil || (got.Moved > 0) != step.moves || got.Exists == step.moves {
					t.Fatalf("push %+v: %+v, %v", step.options, got, err)
				}
			}
			got, err := there.PullProfile(t.Context(), "backups", target, PullOptions{Type: snap.TypeSanitized}, nil)
			if err != nil || got.Snapshot.SHA256 != masked.SHA256 || !got.CreatedTarget || got.Moved != masked.Size {
				t.Fatalf("pull: %+v, %v", got, err)
			}
			intact(t, there, got.Snapshot.Name)
			again, err := there.PullProfile(t.Context(), "", target, PullOptions{SnapshotID: masked.Name}, nil)
			if err != nil || !again.Here || again.Moved != 0 {
				t.Errorf("pull again: %+v, %v", again, err)
			}
			_, err = there.PullProfile(t.Context(), "", target, PullOptions{SnapshotID: "größe"}, nil)
			wantRefusal(t, err, snap.CodeUsage, "2 snapshots")
			_, err = there.PullProfile(t.Context(), "", "books", PullOptions{}, nil)
			wantRefusal(t, err, snap.CodeNotFound, "books")
		})
	}
}

func TestInterruptedPushToAProfileGoesOn(t *testing.T) {
	t.Parallel()
	for kind, place := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := withProfile(t, place(t))
			a.made(t, "shop", snap.TypeSnapshot, noon, inTwoParts)
			ctx, interrupt := context.WithCancel(t.Context())
			_, err := a.PushProfile(ctx, "", "shop", PushOptions{Jobs: 1}, func(Event) {
				interrupt() // as soon as it has begun
			})
			wantHint(t, err, "resumes")
			_, err = a.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			wantRefusal(t, err, snap.CodeNotFound, "shop")
			got, err := a.PushProfile(t.Context(), "", "shop", PushOptions{}, nil)
			if err != nil || got.Moved == 0 {
				t.Errorf("push again: %+v, %v", got, err)
			}
			if _, err := a.PullProfile(t.Context(), "", "shop", PullOptions{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A name in a profile never changes its bytes.
func TestProfileRefusesAnotherSnapshotOfTheName(t *testing.T) {
	t.Parallel()
	place := places()["file"](t)
	here, there := withProfile(t, place), withProfile(t, place)
	here.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	there.made(t, "shop", snap.TypeSnapshot, noon, 2000)
	if _, err := here.PushProfile(t.Context(), "", "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := there.PushProfile(t.Context(), "", "shop", PushOptions{}, nil)
	wantRefusal(t, err, snap.CodeConflict, "a different snapshot")
}

func TestProfilesAreChosenByName(t *testing.T) {
	t.Parallel()
	none := machine(t)
	none.made(t, "shop", snap.TypeSnapshot, noon, 10)
	_, err := none.PushProfile(t.Context(), "", "shop", PushOptions{}, nil)
	wantRefusal(t, err, snap.CodeUsage, "no storage profile")
	one := withProfile(t, "ftp://example")
	_, err = one.PullProfile(t.Context(), "backup", "shop", PullOptions{}, nil)
	wantRefusal(t, err, snap.CodeNotFound, `"backup"`)
	_, err = one.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
	wantRefusal(t, err, snap.CodeUsage, "URL")
}
