package scim

import (
	"encoding/json"
	"strings"
	"time"

	"snap/internal/store"
)

// user is a User resource (RFC 7643 section 4.1) with the attributes that are stored.
type user struct {
	Schemas     []string `json:"schemas"`
	ID          string   `json:"id"`
	ExternalID  string   `json:"externalId,omitempty"`
	UserName    string   `json:"userName"`
	DisplayName string   `json:"displayName,omitempty"`
	Active      bool     `json:"active"`
	Meta        meta     `json:"meta"`
}

// group is a Group resource (RFC 7643 section 4.2).
type group struct {
	Schemas     []string  `json:"schemas"`
	ID          string    `json:"id"`
	ExternalID  string    `json:"externalId,omitempty"`
	DisplayName string    `json:"displayName"`
	Members     *[]member `json:"members,omitempty"` // nil if they were excluded
	Meta        meta      `json:"meta"`
}

type member struct {
	Value   string `json:"value"`
	Display string `json:"display"`
	Ref     string `json:"$ref"`
	Type    string `json:"type"`
}

type meta struct {
	ResourceType string    `json:"resourceType"`
	Created      time.Time `json:"created"`
	LastModified time.Time `json:"lastModified"`
	Location     string    `json:"location"`
}

// list is a page of resources (RFC 7644 section 3.4.2).
type list struct {
	Schemas []string `json:"schemas"`
	Total   int      `json:"totalResults"`
	Start   int      `json:"startIndex"`
	Count   int      `json:"itemsPerPage"`
	Items   any      `json:"Resources"`
}

func (h *handler) user(u store.SCIMUser) user {
	return user{Schemas: []string{schemaUser}, ID: u.ID, ExternalID: u.ExternalID, UserName: u.UserName,
		DisplayName: u.DisplayName, Active: u.Active, Meta: h.meta("User", u.ID, u.Created, u.Changed)}
}

func (h *handler) group(g store.SCIMGroup, members bool) group {
	out := group{Schemas: []string{schemaGroup}, ID: g.ID, ExternalID: g.ExternalID, DisplayName: g.DisplayName,
		Meta: h.meta("Group", g.ID, g.Created, g.Changed)}
	if !members {
		return out
	}
	all := make([]member, 0, len(g.Members))
	for _, m := range g.Members {
		all = append(all, member{m.ID, m.UserName, h.base + "/Users/" + m.ID, "User"})
	}
	out.Members = &all
	return out
}

func (h *handler) meta(kind, id string, created, changed time.Time) meta {
	return meta{kind, created, changed, h.base + "/" + kind + "s/" + id}
}

// userResource returns the changes that a create or replace request makes to a user. Attributes
// that the request does not contain stay unchanged, as RFC 7644 section 3.5.1 allows: some
// providers omit externalId when they replace a user.
func userResource(body []byte) (c store.SCIMUserChange, err error) {
	attributes, err := readResource(body)
	if err != nil {
		return c, err
	}
	for name, value := range attributes {
		if err := setUser(&c, name, value); err != nil {
			return c, err
		}
	}
	if c.UserName == nil {
		return c, invalid("invalidValue", "userName is required")
	}
	return c, nil
}

// groupResource returns the changes that a create or replace request makes to a group. If the
// request contains no members, the group has none.
func groupResource(body []byte) (c store.SCIMGroupChange, err error) {
	attributes, err := readResource(body)
	if err != nil {
		return c, err
	}
	for name, value := range attributes {
		if err := setGroup(&c, name, value); err != nil {
			return c, err
		}
	}
	if c.DisplayName == nil {
		return c, invalid("invalidValue", "displayName is required")
	}
	ids, err := memberIDs(attributes["members"])
	c.Members = []store.SCIMMemberChange{{Action: store.SCIMReplace, IDs: ids}}
	return c, err
}

// readResource reads a resource and returns its attributes by their names in lower case.
func readResource(body []byte) (map[string]json.RawMessage, error) {
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(body, &attributes); err != nil || attributes == nil {
		return nil, invalid("invalidSyntax", "the body is not a resource in JSON")
	}
	out := make(map[string]json.RawMessage, len(attributes))
	for name, value := range attributes {
		if name = strings.ToLower(name); out[name] != nil {
			return nil, invalid("invalidSyntax", "the attribute %s occurs twice", name)
		}
		out[name] = value
	}
	return out, nil
}
