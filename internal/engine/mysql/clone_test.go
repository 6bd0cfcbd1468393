package mysql

import (
	"errors"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// If databases cannot be created, the error gives the reason and the remedy.
func TestCloneRefusals(t *testing.T) {
	t.Parallel()
	to := servertest.OwnMySQL(t, "mariadb", "")
	script(t, to, "CREATE USER lacking@'127.0.0.1'; GRANT SELECT ON own.* TO lacking@'127.0.0.1'")
	for name, c := range map[string]struct {
		url, detail, hint string
		code              snap.Code
	}{
		"a right":  {to, "", "", ""},
		"no right": {strings.Replace(to, "root@", "lacking@", 1), "", "GRANT ", snap.CodeForbidden},
	} {
		checkRefusal(t, name, c.url, c.code, c.detail, c.hint)
	}
	script(t, to, "SET GLOBAL read_only = 1")
	checkRefusal(t, "a replica", to, snap.CodeDatabase, "is read-only, as replicas are", "the primary server")
}

func checkRefusal(t *testing.T, name, url string, code snap.Code, detail, hint string) {
	t.Helper()
	err := Engine{}.CheckCanClone(t.Context(), url)
	var e *snap.Error
	if snap.CodeOf(err) != code || code != "" && (!errors.As(err, &e) || !strings.Contains(e.Detail, detail) ||
		!strings.Contains(e.Hint, hint) || strings.Contains(e.Detail, "\n")) {
		t.Errorf("%s: %s: %+v", name, snap.CodeOf(err), err)
	}
}

// A template without tables can be copied, and is not confused with a missing template.
func TestTemplateWithoutTables(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		e, own := Engine{}, servertest.MySQL(t, server)
		_, d := openURL(t, own)
		template, to := d.named("snapcli_clone_template_x").url(), d.named("snapcli_clone_copy_x").url()
		script(t, own, "CREATE DATABASE snapcli_clone_template_x")
		mark, err := e.Seal(t.Context(), template)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []error{nil, engine.ErrNotSealed} {
			if err := e.Copy(t.Context(), template, to, engine.CopyOptions{Mark: mark}); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if err := errors.Join(e.Drop(t.Context(), to), e.Drop(t.Context(), template)); err != nil {
				t.Error(err)
			}
		}
	})
}

// A copy is complete even if the server's binary log contains statements. Such a server does not
// allow reading without locks.
func TestCopyWithStatementsInTheLog(t *testing.T) {
	t.Parallel()
	from := servertest.OwnMySQL(t, "mariadb", "", "--log-bin=statements", "--binlog-format=STATEMENT",
		"--server-id=1")
	script(t, from, odd)
	to := strings.Replace(from, "/own", "/snapcli_clone_x", 1)
	if err := (Engine{}).Copy(t.Context(), from, to, engine.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); got != want {
		t.Error(difference(want, got))
	}
}
