package cloud

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"snap"
	"snap/api"
)

// This file adds to the OpenAPI document the facts that the routes' types do not express: tags,
// ways to authenticate, and the error codes of every operation.

// tags returns the resources, in the order in which the document lists them.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "snapshots", Description: "Cloud snapshots: list, show, pull and delete."},
		{Name: "cards", Description: "The content of a snapshot, its changes, and the description that people wrote."},
		{Name: "pushes", Description: "Uploads of new snapshots, part by part."},
		{Name: "shares", Description: "Sharing a snapshot: org-wide, with SSO groups, with other organizations."},
		{Name: "access", Description: "Access to a snapshot: who has it and why, who pulled it, and who requests it."},
		{Name: "organization", Description: "The caller, and their organization's people, groups, shares and storage."},
		{Name: "audit", Description: "The audit log, for owners and admins."},
		{Name: "channels", Description: "Standing rules that share new snapshots."},
		{Name: "retention", Description: "How long snapshots are kept."},
		{Name: "webhooks", Description: "URLs that receive events."},
		{Name: "credentials", Description: "API keys and signed-in devices."},
		{Name: "sign-in", Description: "The address at which a client signs in."},
	}
}

// tagOf returns the tag of a path below a mount.
func tagOf(method, path string) string {
	last := path[strings.LastIndex(path, "/")+1:]
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "audit", "channels", "retention", "webhooks":
		return first
	case "bulk":
		return "shares"
	case "access-requests":
		return "access"
	case "keys", "sessions":
		return "credentials"
	case "org", "me":
		return "organization"
	case "uploads":
		return "pushes"
	case "snapshots":
		switch {
		case last == "parts" || last == "complete" || last == "delta" || last == "card" && method != http.MethodGet,
			path == "/snapshots" && method == http.MethodPost:
			return "pushes"
		case slices.Contains([]string{"card", "changes", "about"}, last):
			return "cards"
		case slices.Contains([]string{"access", "why", "newcomers", "pulls"}, last):
			return "access"
		case strings.Contains(path, "share") || last == "received":
			return "shares"
		}
		return "snapshots"
	}
	return "sign-in"
}

// The ways to authenticate.
const (
	byBearer = "bearer"
	byKey    = "apiKey"
	byCookie = "session"
)

func (s *Service) securitySchemes() map[string]*huma.SecurityScheme {
	cookie := "snap_session"
	if strings.HasPrefix(s.config.PublicURL, "https:") {
		cookie = "__Host-" + cookie
	}
	return map[string]*huma.SecurityScheme{
		byBearer: {Type: "http", Scheme: "bearer", Description: "An API key below " + api.MountAgent +
			", an access token below " + api.MountUser + "."},
		byKey: {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "An API key, below " + api.MountAgent +
			" only."},
		byCookie: {Type: "apiKey", In: "cookie", Name: cookie, Description: "The session of a browser, below " +
			api.MountUser + " only."},
	}
}

// completeOpenAPI completes the document after all routes are registered.
func (s *Service) completeOpenAPI() {
	doc := s.web.openAPI
	doc.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	doc.Tags = tags()
	if bulk := doc.Components.Schemas.Map()["BulkRequest"]; bulk != nil { // share, unshare, delete exclude each other
		bulk.Examples = []any{map[string]any{"ids": []string{"snap_7h2k9m4qw8xvbn3t"},
			"share": map[string]any{"group_ids": []string{"eng"}}}}
	}
	doc.Components.SecuritySchemes = s.securitySchemes()
	table := map[string]route{}
	for _, rt := range s.web.table {
		table[rt.pattern] = rt
	}
	for path, item := range doc.Paths {
		for method, op := range methods(item) {
			below, ways := strings.TrimPrefix(path, api.MountUser), []string{byBearer, byCookie}
			if agent, ok := strings.CutPrefix(path, api.MountAgent); ok {
				below, ways = agent, []string{byBearer, byKey}
			}
			rt, known := table[method+" "+below]
			op.Tags, op.Security = []string{tagOf(method, below)}, []map[string][]string{}
			if known {
				for _, way := range ways {
					op.Security = append(op.Security, map[string][]string{way: {}})
				}
			}
			describeErrors(op, codesOf(op, method, rt, known))
			describeParameters(op)
		}
	}
}

// describeErrors lists the statuses of an operation's errors, each with its codes.
func describeErrors(op *huma.Operation, codes []snap.Code) {
	unspecified := op.Responses["default"]
	if unspecified == nil {
		return // already described: the operation on the other mount shares its responses
	}
	problem := unspecified.Content
	delete(op.Responses, "default")
	byStatus := map[int][]snap.CodeInfo{}
	for _, code := range codes {
		info := code.Info()
		byStatus[info.Status] = append(byStatus[info.Status], info)
	}
	for status, infos := range byStatus {
		media := &huma.MediaType{Schema: problem["application/problem+json"].Schema,
			Examples: map[string]*huma.Example{}}
		var texts []string
		for _, info := range infos {
			texts = append(texts, "`"+string(info.Code)+"`: "+info.Title)
			media.Examples[string(info.Code)] = &huma.Example{Value: api.Problem{
				Type: info.Code.Type(), Title: info.Title, Status: status, Detail: info.Title, Code: info.Code,
				RequestID: "Q7XK2B4M",
			}}
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: strings.Join(texts, "; "),
			Content: map[string]*huma.MediaType{"application/problem+json": media}}
	}
}

// codesOf returns the error codes that an operation can return. They follow from the checks before
// its handler, and from what the handler does.
func codesOf(op *huma.Operation, method string, rt route, authenticated bool) []snap.Code {
	codes := []snap.Code{snap.CodeInvalid, snap.CodeRateLimited, snap.CodeInternal, snap.CodeUnavailable}
	add := func(when bool, more ...snap.Code) {
		if when {
			codes = append(codes, more...)
		}
	}
	below := rt.pattern[strings.Index(rt.pattern, " ")+1:]
	has := func(part string) bool { return strings.Contains(below, part) }
	is := func(ids ...string) bool { return slices.Contains(ids, rt.id) }
	sharing := rt.do == snap.ActShare || rt.do == snap.ActShareOrg
	creates := method == http.MethodPost && sharing && !is("unshare-with")
	add(authenticated, snap.CodeUnauthenticated)
	add(authenticated && (rt.do != "" || is("create-key", "list-keys", "list-sessions")), snap.CodeForbidden)
	add(sharing || rt.do == snap.ActDelete || rt.do == snap.ActDecline || rt.do == snap.ActDescribe,
		snap.CodeUserAttributionRequired)
	add(creates || is("create-channel"), snap.CodePolicy, snap.CodeConfirm)
	add(is("create-key"), snap.CodePolicy)
	add(has("{") || is("explain-access", "audience-then", "audit-checkpoint", "audit-inclusion"), snap.CodeNotFound)
	add(has("group") && sharing || is("share-with", "unshare-with", "newcomers", "create-channel"),
		snap.CodeGroupNotFound)
	add(has("share-org") || is("share-with", "unshare-with"), snap.CodeOrganizationNotFound)
	add(authenticated && method != http.MethodGet, snap.CodeConflict)
	add(is("list-audit", "audit-checkpoint", "audit-records", "audit-inclusion", "audit-growth", "share-receipt"),
		snap.CodeConflict) // the log was altered
	add(op.RequestBody != nil, snap.CodeTooLarge, snap.CodeMediaType)
	add(rt.on == onUpload || rt.on == onPush || is("begin-push"), snap.CodeStorageFull)
	add(is("begin-push", "complete-push"), snap.CodeQuota)
	add(is("complete-push"), snap.CodeUploadIncomplete, snap.CodeChecksumMismatch, snap.CodeVerifying)
	slices.Sort(codes)
	return slices.Compact(codes)
}

// describeParameters gives every parameter an example: the example that it states, its default, or
// the first value that it allows.
func describeParameters(op *huma.Operation) {
	for _, p := range op.Parameters {
		switch {
		case p.Example != nil:
		case p.Schema != nil && len(p.Schema.Examples) > 0:
			p.Example = p.Schema.Examples[0]
		case p.Schema != nil && p.Schema.Default != nil:
			p.Example = p.Schema.Default
		case p.Schema != nil && len(p.Schema.Enum) > 0:
			p.Example = p.Schema.Enum[0]
		}
	}
}

func (s *Service) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	doc, err := s.OpenAPI()
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(doc)
}

// OpenAPI returns the OpenAPI 3.1 document, which is generated from the routes' types.
func (s *Service) OpenAPI() ([]byte, error) {
	doc, err := json.MarshalIndent(s.web.openAPI, "", "  ")
	return append(doc, '\n'), err
}
