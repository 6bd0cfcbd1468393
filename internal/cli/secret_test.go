package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// presigned matches the part of a URL that gives access to the bytes.
var presigned = regexp.MustCompile(`/blobs/(parts/)?[0-9A-Za-z_-]{8,}|[?&]X-Amz-`)

// secretfreeCommand checks that the last output and the given files contain no secret of the acting
// person (AUTH T9): the API key, the tokens of the login session, and the signature of a presigned
// URL:
//
//	secretfree [file...]
func secretfreeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: secretfree [file...]")
	}
	var secrets []string
	if key := ts.Getenv("SNAPCLI_CLOUD__API_KEY"); key != "" {
		secrets = append(secrets, key)
	}
	data, err := os.ReadFile(filepath.Join(ts.Getenv("SNAPCLI_CONFIG_DIR"), "credentials.json"))
	if err == nil {
		var kept any
		ts.Check(json.Unmarshal(data, &kept))
		secrets = append(secrets, tokensIn(kept)...)
	}
	if len(secrets) == 0 {
		ts.Fatalf("there is no secret to look for")
	}
	for _, file := range append([]string{"stdout", "stderr"}, args...) {
		text := ts.ReadFile(file)
		for _, s := range secrets {
			if regexp.MustCompile(regexp.QuoteMeta(s)).MatchString(text) {
				ts.Fatalf("%s contains a secret:\n%s", file, text)
			}
		}
		if m := presigned.FindString(text); m != "" {
			ts.Fatalf("%s contains a presigned URL: %s", file, m)
		}
	}
}

// tokensIn collects the values of keys that name tokens, at any depth.
func tokensIn(v any) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && (key == "access_token" || key == "refresh_token") && s != "" {
				found = append(found, s)
			}
			found = append(found, tokensIn(value)...)
		}
	case []any:
		for _, value := range v {
			found = append(found, tokensIn(value)...)
		}
	}
	return found
}
