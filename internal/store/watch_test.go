package store_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"snap"
	"snap/internal/store"
)

// TestWatch: on both databases, a watch receives statements and their ends but never a value.
func TestWatch(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); testWatch(t, "") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); testWatch(t, postgres(t)) })
}

func testWatch(t *testing.T, url string) {
	var mu sync.Mutex
	var kinds, texts []string
	open := 0
	watch := func(ctx context.Context, statement string) (context.Context, func(error)) {
		mu.Lock()
		defer mu.Unlock()
		kinds, texts = append(kinds, store.StatementKind(statement)), append(texts, statement)
		open++
		return ctx, func(error) { mu.Lock(); open--; mu.Unlock() }
	}
	s, err := store.Open(t.Context(), store.Options{URL: url, DataDir: t.TempDir(), Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.ApplyOrg(t.Context(), "a-name-nobody-else-has", "Acme", snap.Policy{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OrgBySlug(t.Context(), "a-name-nobody-else-has"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, kind := range []string{"select", "insert", "begin", "commit"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no %s was seen, only %v", kind, kinds)
		}
	}
	if open != 0 {
		t.Errorf("%d statements began and did not end", open)
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, "a-name-nobody-else-has") {
		t.Error("a watch received a value")
	}
	if len(s.Pools()) == 0 {
		t.Error("no pool")
	}
}

// TestStatementKind checks the kind of every statement.
func TestStatementKind(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"SELECT 1": "select", "\n\t\tSELECT\n1": "select", "(SELECT 1)": "select",
		"WITH a AS (SELECT 1) SELECT 2": "select",
		"insert into x":                 "insert", "begin": "begin", "": "other", "CREATE TABLE x": "other",
	} {
		if got := store.StatementKind(statement); got != want {
			t.Errorf("%q is %s, want %s", statement, got, want)
		}
	}
}
