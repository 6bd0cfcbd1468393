package scim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/store"
)

// allowed fails unless the error is a mistake of the client and has a scimType (RFC 7644).
func allowed(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || snap.CodeOf(err) != snap.CodeInvalid || e.Type == "" || e.Error() == "" {
		t.Errorf("not an error of SCIM: %v", err)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]condition{
		`userName eq "a"`:                                            {{"username", "a"}},
		`  USERNAME   EQ   "a b\"c\u00e9" `:                          {{"username", `a b"cé`}},
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "a"`: {{"username", "a"}},
		`urn:example:2.0:User:userName eq "a"`:                       {{extension, "a"}},
		`id eq "1" and members.value eq "2"`:                         {{"id", "1"}, {"members.value", "2"}},
		`active eq true`:                                             {{"active", "true"}},
		`n eq 12`:                                                    {{"n", "12"}},
		``:                                                           nil,
		`userName`:                                                   nil,
		`userName eq`:                                                nil,
		`userName eq a`:                                              nil,
		`userName eq "a`:                                             nil,
		`userName eq ["a"]`:                                          nil,
		`userName eq null`:                                           nil,
		`userName co "a"`:                                            nil,
		`userName eq "a" or id eq "b"`:                               nil,
		`not (userName eq "a")`:                                      nil,
		`userName eq "a" and`:                                        nil,
		`userName eq "a" id eq "b"`:                                  nil,
		`userName eq "a"and id eq "b"`:                               nil,
		"userName eq \"\xff\"":                                       nil,
		`userName eq "` + strings.Repeat("a", maxFilter) + `"`:        nil,
		strings.Repeat(`id eq "a" and `, maxConditions) + `id eq "a"`: nil,
	} {
		got, err := parseFilter(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%.80s: %v, %v", text, got, err)
		}
		if err != nil {
			allowed(t, err)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`members`:                      "{members [] }",
		`Members[value eq "a"]`:        "{members [{value a}] }",
		`members[ value eq "a]" ] `:    "{members [{value a]}] }",
		`emails[type eq "work"].value`: "{emails [{type work}] value}",
		`name.familyName`:              "{name [] familyname}",
		`urn:ietf:params:scim:schemas:core:2.0:Group:members[value eq "a"]`:        "{members [{value a}] }",
		`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value`: "{extension [] }",
		`members[value eq "a"`:   "",
		`members[]`:              "",
		`members[value eq "a"]x`: "",
		`a.b[value eq "a"]`:      "",
		`a.b.c`:                  "",
		`[value eq "a"]`:         "",
		`members]`:               "",
		``:                       "",
	} {
		got, err := parsePath(text)
		if err != nil {
			allowed(t, err)
		}
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// FuzzFilter: a filter is refused in SCIM's words, or says the same when it is written out again.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{`userName eq "a"`, `id eq "1" and members eq "2"`, `a.b eq true`, `x eq 1e3`,
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "é"`, `a eq "\ud800"`, `a eq "x" and `} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseFilter(text)
		if err != nil {
			allowed(t, err)
			return
		}
		var parts []string
		for _, c := range got {
			if c.attribute == "" || c.attribute != strings.ToLower(c.attribute) {
				t.Errorf("attribute %q", c.attribute)
			}
			parts = append(parts, c.attribute+` eq `+quote(c.value))
		}
		again, err := parseFilter(strings.Join(parts, " and "))
		if err == nil && !slices.Equal(got, again) {
			t.Errorf("%q is %v, and written out %v", text, got, again)
		}
		if err != nil && len(strings.Join(parts, " and ")) <= maxFilter {
			t.Errorf("%q, written out: %v", text, err)
		}
	})
}

func quote(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
	var out strings.Builder
	for _, r := range s {
		if r < ' ' {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return `"` + out.String() + `"`
}

// FuzzPath: a path is refused in SCIM's words, or names an attribute.
func FuzzPath(f *testing.F) {
	for _, text := range []string{`members`, `members[value eq "a"]`, `emails[type eq "work"].value`, `name.familyName`,
		`urn:ietf:params:scim:schemas:core:2.0:Group:members[value eq "a" and type eq "b"].x`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			allowed(t, err)
			return
		}
		if p.attribute == "" || strings.ContainsAny(p.attribute+p.sub, ` ."[]`) || p.where != nil && len(p.where) == 0 {
			t.Errorf("%q is %+v", text, p)
		}
	})
}

// FuzzPatch: a PATCH request or a resource is refused in SCIM's words, or is a change within the
// limits.
func FuzzPatch(f *testing.F) {
	for _, text := range []string{
		`{"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}`,
		`{"Operations": [{"op": "replace", "value": {"active": false, "userName": "x"}}]}`,
		`{"Operations": [{"op": "Add", "path": "members", "value": [{"value": "a"}, "b"]}]}`,
		`{"Operations": [{"op": "remove", "path": "members[value eq \"a\"]"}]}`,
		`{"userName": "x", "externalId": null, "active": true}`, `{"displayName": "g", "members": {"value": "a"}}`,
		`[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func([]byte) (store.SCIMUserChange, error){userPatch, userResource} {
			c, err := read(body)
			if err != nil {
				allowed(t, err)
				continue
			}
			if c.UserName != nil && *c.UserName == "" {
				t.Error("an empty userName")
			}
			inBounds(t, c.UserName, c.ExternalID, c.DisplayName)
		}
		for _, read := range []func([]byte) (store.SCIMGroupChange, error){groupPatch, groupResource} {
			c, err := read(body)
			if err != nil {
				allowed(t, err)
				continue
			}
			inBounds(t, c.ExternalID, c.DisplayName)
			n := 0
			for _, step := range c.Members {
				n += len(step.IDs)
			}
			if n > maxMembers {
				t.Errorf("%d members", n)
			}
		}
	})
}

func inBounds(t *testing.T, texts ...*string) {
	t.Helper()
	for _, s := range texts {
		if s != nil && len(*s) > maxText {
			t.Errorf("a text of %d bytes", len(*s))
		}
	}
}
