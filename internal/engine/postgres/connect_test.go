package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// secured returns the URL of a server and the folder of its certificates. The server accepts the
// role "alone" only over TLS, the role "with_cert" only with a client certificate, and the role
// "asked" only with a password.
func secured(t *testing.T) (raw, certs string) {
	t.Helper()
	raw, restart := servertest.CrashingPostgres(t) // hba_file is only read at the start
	certs = t.TempDir()
	servertest.Certificates(t, certs)
	files := map[string]string{"ca.pem": "", "server.pem": "", "server.key": ""}
	for name := range files {
		text, err := os.ReadFile(filepath.Join(certs, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	files["hba.conf"] = "local all all trust\nhostssl all with_cert all cert map=m\nhostssl all alone all trust\n" +
		"hostnossl all alone all reject\nhost all asked all scram-sha-256\nhost all all all trust\n"
	files["ident.conf"] = "m client with_cert\n"
	text := "CREATE USER alone SUPERUSER; CREATE USER with_cert SUPERUSER; CREATE USER asked PASSWORD 'secret';\n"
	for name, content := range files {
		text += fmt.Sprintf("COPY (SELECT line FROM regexp_split_to_table(%s, '\\n') line) TO PROGRAM "+
			"'cat > snapcli_%[2]s; chmod 600 snapcli_%[2]s';\n", quoteText(content), name)
	}
	data := texts(t, raw, "SHOW data_directory")[0]
	for name, file := range map[string]string{"ssl_ca_file": "ca.pem", "ssl_cert_file": "server.pem",
		"ssl_key_file": "server.key", "hba_file": "hba.conf", "ident_file": "ident.conf"} {
		text += fmt.Sprintf("ALTER SYSTEM SET %s = '%s/snapcli_%s';\n", name, data, file)
	}
	text += "ALTER SYSTEM SET ssl = on"
	for statement := range strings.SplitSeq(text, ";\n") { // ALTER SYSTEM must be sent alone
		execute(t, raw, statement)
	}
	restart()
	return raw, certs
}

// TestTLS builds and loads over TLS, with each way to verify the server and with a client
// certificate, through a service file and a list of hosts. It also checks the error of each
// refusal.
func TestTLS(t *testing.T) {
	t.Parallel()
	raw, certs := secured(t)
	psql(t, raw, script(t, "CREATE TABLE a (b int); INSERT INTO a VALUES (1)"))
	in := func(name string) string { return filepath.Join(certs, name) }
	at := func(user, parameters string) string { return withParameters(t, raw, user, parameters) }
	ca := "sslrootcert=" + in("ca.pem")
	if err := os.Chmod(in("client.key"), 0o600); err != nil { // libpq refuses a key that others can read
		t.Fatal(err)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	service := filepath.Join(certs, "services")
	if err := os.WriteFile(service, fmt.Appendf(nil, "[shop]\nhost=%s\nport=%s\nuser=alone\ndbname=%s\n"+
		"sslmode=verify-full\nsslrootcert=%s\n", u.Hostname(), u.Port(), u.Path[1:], in("ca.pem")), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := strings.Replace(at("alone", "sslmode=require&target_session_attrs=read-write"), u.Host,
		"127.0.0.1:1,"+u.Host, 1)
	for _, good := range []string{
		at("alone", ""), at("alone", "sslmode=require"),
		at("alone", "sslmode=verify-full&"+ca), at("alone", "sslmode=verify-ca&"+ca),
		at("with_cert", "sslmode=verify-full&"+ca+"&sslcert="+in("client.pem")+"&sslkey="+in("client.key")),
		"postgres://?service=shop&servicefile=" + service, hosts,
	} {
		if err := roundTripAt(t, good); err != nil {
			t.Errorf("%s: %v (%v)", good, err, errors.Unwrap(err))
		}
	}
	passwords := in("pgpass") // PostgreSQL's programs read this file too
	if err := os.WriteFile(passwords, []byte("*:*:*:asked:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, raw, "GRANT SELECT ON a TO asked")
	if _, err := (Engine{}).Dump(t.Context(), at("asked", "passfile="+passwords), &bytes.Buffer{},
		engine.Options{}); err != nil {
		t.Errorf("%v (%v)", err, errors.Unwrap(err))
	}
	full := at("alone", "sslmode=verify-full&"+ca)
	for bad, want := range map[string]string{
		at("alone", "sslmode=disable"): "requires TLS",
		at("alone",
			"sslmode=verify-full"): "certificate of the PostgreSQL server",
		at("with_cert", "sslmode=verify-full&"+ca):                               "refused the user \"with_cert\"",
		at("asked", "sslmode=require"):                                           `refused the user "asked"`,
		strings.Replace(full, "127.0.0.1", "localhost", 1):                       "cannot be verified",
		withParameters(t, servertest.Postgres(t), "postgres", "sslmode=require"): "does not offer TLS",
		withParameters(t, servertest.Postgres(t), "nobody", ""):                  `refused the user "nobody"`,
	} {
		if _, err := (Engine{}).Check(t.Context(), bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (%v)", bad, err, errors.Unwrap(err))
		}
	}
}

// withParameters returns a URL with another user and these parameters.
func withParameters(t *testing.T, raw, user, parameters string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.RawQuery = url.User(user), parameters
	return u.String()
}

func roundTripAt(t *testing.T, raw string) error {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), raw, &b, engine.Options{Jobs: 2})
	if err != nil {
		return err
	}
	return load(t, raw, dumpOf(b.Bytes(), info), false)
}
