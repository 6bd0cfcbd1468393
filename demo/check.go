package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // to mask a copy

	"snap/api"
	"snap/internal/sample"
)

// snapshotsOf returns the cloud snapshots that a person sees.
func (w *world) snapshotsOf(ctx context.Context, p person) ([]api.Snapshot, error) {
	text, err := w.outputOf(ctx, p, "snapcli", "cloud", "snapshots", "--json")
	if err != nil {
		return nil, err
	}
	var list []api.Snapshot
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("snapcli cloud snapshots --json: %w", err)
	}
	return list, nil
}

// checkSeenBy checks that, of the four callers, exactly the expected ones see the snapshot. If show
// is set, it shows each caller's list.
func (s *story) checkSeenBy(ctx context.Context, show bool, expected ...person) error {
	var see, not []string
	for _, p := range callers() {
		if show {
			if err := s.show(ctx, p, "cloud", "snapshots"); err != nil {
				return err
			}
		}
		list, err := s.snapshotsOf(ctx, p)
		if err != nil {
			return err
		}
		found := slices.ContainsFunc(list, func(sn api.Snapshot) bool { return sn.ID == s.id })
		if found != slices.Contains(expected, p) {
			return fmt.Errorf("%s sees the snapshot: %v", p.prompt(), found)
		}
		if found {
			see = append(see, p.prompt())
		} else {
			not = append(not, p.prompt())
		}
	}
	text := "seen by " + strings.Join(see, ", ")
	if len(not) > 0 {
		text += "; to " + strings.Join(not, ", ") + " it does not exist"
	}
	s.out.checked("%s", text)
	return nil
}

// maskedCopy masks a copy of the production database without snapcli and returns the tables of that
// copy.
func (s *story) maskedCopy(ctx context.Context) ([]sample.Table, error) {
	data, err := os.ReadFile(s.database(alice))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "expected.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, sample.MaskSQL); err != nil {
		return nil, fmt.Errorf("mask a copy: %w", err)
	}
	return sample.Fingerprint(ctx, file)
}

// downloadLink gets a download link for a person from the API, with an API key that the operator
// creates. It checks that the link works.
func (s *story) downloadLink(ctx context.Context, p person) (string, error) {
	key, err := s.outputOf(ctx, operator, "snapcloud", "key", "create", "--config", s.config,
		"--org", p.org, "--kind", "user", "--user", p.email(), "--name", "demo")
	if err != nil {
		return "", err
	}
	c, err := api.New(api.Options{BaseURL: s.url, Mount: api.MountAgent, Token: api.StaticToken(key)})
	if err != nil {
		return "", err
	}
	answer, err := c.Pull(ctx, s.id)
	if err != nil {
		return "", fmt.Errorf("a download link for %s: %w", p.name, err)
	}
	status, err := fetch(ctx, answer.URL)
	if err == nil && status != http.StatusPartialContent {
		err = fmt.Errorf("the download link responds with %d", status)
	}
	return answer.URL, err
}

// fetch requests the first byte at an address and returns the status.
func fetch(ctx context.Context, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Range", "bytes=0-0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, err
}
