package scim

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/store"
)

// Prefix begins the path of every route.
const Prefix = "/scim/v2/"

// Options configures the handler.
type Options struct {
	Store     *store.Store
	PublicURL string // of the service
	// Reporter returns the identity provider that sent a request, according to the request's
	// credential. Without a valid credential, it fails with snap.ErrUnauthenticated. It also
	// refuses requests that come too often.
	Reporter func(*http.Request) (store.Reporter, error)
	Fail     func(http.ResponseWriter, *http.Request, error) // responds with an error; see [WriteError]
}

type handler struct {
	Options
	base string // URL of the SCIM routes, without a final slash
}

// New returns the handler of all paths below [Prefix]. Without a credential, it refuses existing
// and unknown paths alike.
func New(o Options) http.Handler {
	h := &handler{o, strings.TrimSuffix(o.PublicURL, "/") + strings.TrimSuffix(Prefix, "/")}
	mux := http.NewServeMux()
	for pattern, f := range map[string]action{
		"GET Users": h.listUsers, "POST Users": h.createUser, "GET Users/{id}": h.getUser,
		"PUT Users/{id}": h.replaceUser, "PATCH Users/{id}": h.patchUser, "DELETE Users/{id}": h.deleteUser,
		"GET Groups": h.listGroups, "POST Groups": h.createGroup, "GET Groups/{id}": h.getGroup,
		"PUT Groups/{id}": h.replaceGroup, "PATCH Groups/{id}": h.patchGroup, "DELETE Groups/{id}": h.deleteGroup,
		"GET ServiceProviderConfig": h.document(h.serviceProviderConfig()),
		"GET ResourceTypes":         h.documents(h.resourceTypes()),
		"GET ResourceTypes/{id}":    h.documentByID(h.resourceTypes()),
		"GET Schemas":               h.documents(h.schemas()),
		"GET Schemas/{id}":          h.documentByID(h.schemas()),
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+Prefix+path, h.authenticated(f))
	}
	mux.Handle(Prefix, h.authenticated(func(http.ResponseWriter, *http.Request, store.Reporter) error {
		return errNoPath
	}))
	return mux
}

var errNoPath = &snap.Error{Code: snap.CodeNotFound,
	Detail: "nothing exists at this path, or the path does not support this method"}

// action handles a request from a reporter.
type action func(http.ResponseWriter, *http.Request, store.Reporter) error

func (h *handler) authenticated(f action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reporter, err := h.Reporter(r)
		if err == nil {
			err = f(w, r, reporter)
		}
		if err != nil {
			h.Fail(w, r, err)
		}
	})
}

// readBody parses the body of a request, whose size the service has limited.
func readBody[T any](r *http.Request, parse func([]byte) (T, error)) (none T, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return none, invalid("invalidSyntax", "the body did not arrive completely")
	}
	if snap.NULInJSON(body) {
		return none, invalid("invalidValue", "the body has a NUL character")
	}
	return parse(body)
}

// The sizes of a page.
const (
	defaultCount = 100
	maxCount     = 500
)

// pageOf reads the parameters of a listing (RFC 7644 section 3.4.2.4). Its filter may contain only
// the given attributes.
func pageOf(r *http.Request, attributes ...string) (p store.SCIMPage, start int, err error) {
	q := r.URL.Query()
	number := func(name string, otherwise, most int) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			return otherwise
		}
		return min(max(n, 0), most)
	}
	start = max(number("startIndex", 1, 1<<30), 1)
	p.Skip, p.Limit = start-1, number("count", defaultCount, maxCount)
	if q.Get("filter") == "" {
		return p, start, nil
	}
	conditions, err := parseFilter(q.Get("filter"))
	if err != nil {
		return p, start, err
	}
	into := map[string]*string{"id": &p.ID, "username": &p.UserName, "externalid": &p.ExternalID,
		"displayname": &p.DisplayName, "members": &p.Member, "members.value": &p.Member}
	for _, c := range conditions {
		if !slices.Contains(attributes, c.attribute) {
			return p, start, invalid("invalidFilter", "the filter can be on %s, and not on %s",
				strings.Join(attributes, ", "), c.attribute)
		}
		field := into[c.attribute]
		if field == &p.Member && *field != "" && *field != c.value {
			return p, start, invalid("invalidFilter", "the filter can name only one member")
		}
		if c.value == "" || *field != "" && *field != c.value {
			p.ID = "none" // nothing matches: no resource has an empty value, or two of these values
			return p, start, nil
		}
		*field = c.value
	}
	return p, start, nil
}

// wantsMembers reports whether a response should include the members of groups (RFC 7644 section
// 3.9).
func wantsMembers(r *http.Request) bool {
	q := r.URL.Query()
	names := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(q.Get(name)), func(r rune) bool { return r == ',' || r == ' ' })
	}
	if only := names("attributes"); len(only) > 0 {
		return slices.ContainsFunc(only, func(name string) bool { return strings.HasPrefix(name, "members") })
	}
	return !slices.Contains(names("excludedAttributes"), "members")
}

func writeList[T any](w http.ResponseWriter, items []T, total, start int) error {
	if items == nil {
		items = []T{}
	}
	writeJSON(w, http.StatusOK, list{[]string{schemaList}, total, start, len(items), items})
	return nil
}
