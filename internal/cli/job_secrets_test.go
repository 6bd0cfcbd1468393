package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJobTokensAreHidden checks that neither the log of --debug nor an error shows the token of a
// CI job, in any form, even if the service repeats the token.
func TestJobTokensAreHidden(t *testing.T) {
	t.Parallel()
	const token, bearer = "opaque+token+of+this+job", "opaque+bearer+of+the+runner"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/auth/config":
			fmt.Fprintf(w, `{"auth_url": "http://%s/auth", "client_id": "snapcli", `+
				`"exchange_url": "http://%[1]s/exchange"}`,
				r.Host)
		case "/actions":
			fmt.Fprintf(w, `{"value": %q}`, token)
		case "/exchange":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error": "invalid_grant", "error_description": "no rule accepts %s or %s"}`,
				r.FormValue("subject_token"), bearer)
		}
	}))
	t.Cleanup(server.Close)
	for name, vars := range map[string]map[string]string{
		"variable": {"SNAPCLI_ID_TOKEN": token, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": bearer},
		"file":     {"SNAPCLI_ID_TOKEN_FILE": file, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": bearer},
		"actions": {"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "/actions",
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN": bearer},
	} {
		dir := t.TempDir()
		vars["SNAPCLI_CLOUD__URL"], vars["SNAPCLI_CONFIG_DIR"], vars["SNAPCLI_DATA_DIR"] = server.URL, dir, dir
		var said bytes.Buffer
		code := patientMain(t.Context(), []string{"cloud", "snapshots", "--debug"}, IO{Out: io.Discard, Err: &said},
			func(name string) string { return vars[name] })
		if text := said.String(); code == 0 || !strings.Contains(text, "no rule accepts [hidden] or [hidden]") ||
			strings.Contains(text, token) || strings.Contains(text, bearer) {
			t.Errorf("%s: exit %d, %s", name, code, text)
		}
	}
}
