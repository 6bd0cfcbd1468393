package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"snap"
)

// The oldest program that is not older than the server is used. If there is no such program, the
// message names the package to install, and if the program does not run, the reason.
func TestToolOfTheRightVersion(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell: the programs are scripts")
	}
	var dirs []string
	for _, v := range []string{"17.2", "13.11", "15.4 (Debian 15.4-1)"} {
		dir := t.TempDir()
		text := fmt.Sprintf("#!/bin/sh\necho 'pg_dump (PostgreSQL) %s'\n", v)
		if err := os.WriteFile(filepath.Join(dir, "pg_dump"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	e := Engine{Tools: dirs}
	for server, want := range map[int]string{12: "13.11", 13: "13.11", 14: "15.4", 15: "15.4", 16: "17.2", 17: "17.2"} {
		if got, err := e.tool("pg_dump", server); err != nil || got.version != want {
			t.Errorf("for a server %d: %q, %v, want %s", server, got.version, err, want)
		}
	}
	_, err := e.tool("pg_dump", 18)
	var missing *snap.Error
	if !errors.As(err, &missing) || missing.Code != snap.CodeNoTool || !strings.Contains(missing.Detail, "17.2") ||
		!strings.Contains(missing.Hint, "postgresql-client-18") {
		t.Errorf("for a server 18: %v", err)
	}
	empty := t.TempDir()
	_, err = Engine{Tools: []string{empty}}.tool("pg_dump", 18)
	if !errors.As(err, &missing) || missing.Code != snap.CodeNoTool || !strings.Contains(missing.Detail, empty) ||
		!strings.Contains(missing.Hint, "postgres_tools") {
		t.Errorf("without any in the folder that is set: %v", err)
	}
	if err := os.WriteFile(filepath.Join(empty, "pg_dump"), []byte("#!/bin/sh\nexit 127\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Engine{Tools: []string{empty}}.tool("pg_dump", 18)
	if !errors.As(err, &missing) || missing.Code != snap.CodeNoTool ||
		!strings.Contains(missing.Detail, "cannot be used: exit status 127") {
		t.Errorf("a program that does not run: %v", err)
	}
}
