package cli

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"snap/api"
)

// printed is the output of each command with --json. It is the promise to scripts: fields may be
// added, but none may disappear.
var printed = []struct {
	command string
	value   any
}{
	{"build", localView{}},
	{"sanitize", localView{}},
	{"sanitize --init", rulesView{}},
	{"sanitize --check", rulesCheckView{}},
	{"load", loadView{}},
	{"clone, clones, clones list", []cloneView{}},
	{"reset", cloneView{}},
	{"clones drop", []droppedView{}},
	{"clones warm", warmView{}},
	{"agent, as a line for each event", agentEvent{}},
	{"agent run", runView{}},
	{"agent status", []agentView{}},
	{"push", pushView{}},
	{"pull", pullView{}},
	{"snapshots, snapshots list", []localView{}},
	{"snapshots show", localView{}},
	{"snapshots verify", []verifiedView{}},
	{"diff", diffView{}},
	{"targets, targets list", []targetView{}},
	{"targets show", targetView{}},
	{"targets check", []checkedDatabase{}},
	{"trust list", []trustView{}},
	{"trust add", trustView{}},
	{"keys list", []signingKeyView{}},
	{"keys new, keys trust, keys revoke", signingKeyView{}},
	{"config, config show", []setting{}},
	{"config get", setting{}},
	{"config import dbsnapper, config import greenmask", importView{}},
	{"doctor", []finding{}},
	{"whoami", identity{}},
	{"whoami --all", []account{}},
	{"login, as a line for the code", codeEvent{}},
	{"login, as a line while it waits", waitingEvent{}},
	{"login, as a line when it is approved", doneEvent{}},
	{"login, as a line when it fails", failedEvent{}},
	{"cloud snapshots, cloud snapshots list", []api.Snapshot{}},
	{"cloud snapshots show", cloudView{}},
	{"cloud snapshots describe", api.Snapshot{}},
	{"cloud snapshots share, cloud snapshots unshare", []shareChange{}},
	{"cloud snapshots shares", sharesList{}},
	{"cloud snapshots access", api.Access{}},
	{"cloud snapshots access --at", api.AudienceThen{}},
	{"cloud snapshots receipt", api.AuditInclusion{}},
	{"cloud requests, cloud requests list", []api.AccessRequest{}},
	{"cloud groups", []api.Group{}},
	{"cloud channels, cloud channels list", []api.Channel{}},
	{"cloud channels add", api.Channel{}},
	{"cloud certificate-keys, cloud certificate-keys list", []api.CertificateKey{}},
	{"cloud certificate-keys add", api.CertificateKey{}},
	{"cloud retention, cloud retention list", []api.RetentionRule{}},
	{"cloud retention set", api.RetentionRule{}},
	{"cloud retention run", api.RetentionResult{}},
	{"cloud webhooks, cloud webhooks list", []api.Webhook{}},
	{"cloud webhooks add", api.NewWebhook{}},
	{"cloud webhooks deliveries", []api.Delivery{}},
	{"cloud webhooks test", api.WebhookTest{}},
	{"cloud webhooks replay", api.ReplayResult{}},
	{"cloud webhooks rotate", api.NewWebhook{}},
	{"cloud webhooks enable", api.Webhook{}},
	{"cloud keys, cloud keys list", []api.Key{}},
	{"cloud keys create", api.NewKey{}},
	{"cloud sessions, cloud sessions list", []api.Session{}},
	{"cloud uploads, cloud uploads list", []api.Upload{}},
	{"cloud audit", []api.AuditEntry{}},
	{"cloud audit --verify", api.AuditVerdict{}},
	{"version", versionView{}},
	{"any command that fails, on standard error", errorObject{}},
}

// TestJSONPage: docs/json.md lists the fields that --json prints, and every
// command with that flag is in it.
func TestJSONPage(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	page.WriteString("# What --json prints\n\nThis page is generated from the code. Fields are added, but never " +
		"removed or renamed. Times are\nRFC 3339 in UTC, and sizes are in bytes. A field marked optional is omitted " +
		"when it is empty.\n")
	documented := map[string]bool{}
	for _, p := range printed {
		kind := reflect.TypeOf(p.value)
		what := "an object"
		if kind.Kind() == reflect.Slice {
			kind, what = kind.Elem(), "an array of objects"
		}
		fmt.Fprintf(&page, "\n## %s\n\nPrints %s:\n\n| field | type | |\n|---|---|---|\n", p.command, what)
		fields(&page, "", kind)
		for _, name := range strings.Split(p.command, ", ") {
			documented["snapcli "+strings.Split(name, " --")[0]] = true
		}
	}
	compare(t, "../../docs/json.md", page.Bytes())
	for _, c := range commands(referenceApp().root()) {
		if c.LocalNonPersistentFlags().Lookup("json") != nil && !documented[c.CommandPath()] {
			t.Errorf("%s has --json, and what it prints is not documented", c.CommandPath())
		}
	}
}

var timeType = reflect.TypeOf(time.Time{})

// fields writes a row for each JSON field of a struct, including the fields of nested structs.
func fields(w *bytes.Buffer, prefix string, kind reflect.Type) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			fields(w, prefix, f.Type)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		of, word := typeWord(f.Type)
		note := f.Tag.Get("doc")
		if strings.Contains(options, "omitempty") {
			note = strings.TrimSuffix("optional; "+note, "; ")
		}
		fmt.Fprintf(w, "| `%s%s` | %s | %s |\n", prefix, name, word, strings.ReplaceAll(note, "|", "\\|"))
		if of != nil {
			fields(w, prefix+name+".", of)
		}
	}
}

// typeWord names a JSON type, and returns the struct to go into, if any.
func typeWord(t reflect.Type) (inside reflect.Type, word string) {
	switch {
	case t == timeType:
		return nil, "time"
	case t.Kind() == reflect.Pointer:
		return typeWord(t.Elem())
	case t.Kind() == reflect.Slice:
		inside, word = typeWord(t.Elem())
		return inside, "array of " + word
	case t.Kind() == reflect.Map:
		return nil, "object"
	case t.Kind() == reflect.Struct:
		return t, "object"
	case t.Kind() == reflect.Bool:
		return nil, "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64:
		return nil, "number"
	}
	return nil, "text"
}
