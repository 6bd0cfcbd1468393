package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"snap"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// TestCloudScripts runs the command line against a whole cloud service, a fresh
// one for every script. The people are those of cloudtest.
func TestCloudScripts(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	runScripts(t, "testdata/cloud", func(e *testscript.Env) error {
		c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
			// initech
			config.Organizations[2].Policy = cloud.Policy{UnsanitizedShares: snap.UnsanitizedAsk,
				MaxCrossOrgExpiry: "30d"}
		}})
		e.Values[cloudKey{}] = c
		e.Setenv("CLOUD", c.URL)
		e.Setenv("SNAPCLI_CLOUD__URL", c.URL)
		return nil
	})
}

type cloudKey struct{}

func cloudOf(ts *testscript.TestScript) *cloudtest.Cloud {
	return ts.Value(cloudKey{}).(*cloudtest.Cloud)
}

// asCommand runs the following commands as a person with an API key on their own machine, with an
// organization's key, or as a person without a credential:
//
//	as alice@acme.test
//	as acme clt pull push
//	as nobody
func asCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: as EMAIL | as ORG KIND SCOPE... | as nobody")
	}
	who := args[0]
	dir := ts.MkAbs(strings.ReplaceAll(who, "@", "-"))
	ts.Setenv("SNAPCLI_CONFIG_DIR", filepath.Join(dir, "config"))
	ts.Setenv("SNAPCLI_DATA_DIR", filepath.Join(dir, "data"))
	key := ""
	switch {
	case len(args) > 1:
		var scopes []snap.Scope
		for _, s := range args[2:] {
			scopes = append(scopes, snap.Scope(s))
		}
		key = cloudOf(ts).OrgKey(who, snap.CredentialKind(args[1]), scopes...)
	case strings.Contains(who, "@"):
		key = cloudOf(ts).Key(who)
	}
	ts.Setenv("SNAPCLI_CLOUD__API_KEY", key)
}

// pushedCommand pushes a snapshot to the cloud as a person, and sets variables to its ID, the
// beginning of its ID and its name:
//
//	pushed alice@acme.test shop sanitized A    sets $A, $A_SHORT and $A_NAME
func pushedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: pushed EMAIL TARGET TYPE VARIABLE")
	}
	c := cloudOf(ts)
	content := []byte(strings.Join(args, " ") + time.Now().String())
	s := c.PushAs(c.As(args[0]), args[1], snap.Type(args[2]), content)
	ts.Setenv(args[3], s.ID)
	ts.Setenv(args[3]+"_SHORT", s.ID[:len(snap.IDPrefix)+minID])
	ts.Setenv(args[3]+"_NAME", s.Name)
}
