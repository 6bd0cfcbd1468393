package scim

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"snap/internal/store"
)

// operation is one operation of a PATCH request. encoding/json ignores the case of the names op,
// path and value.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// The limits of a request.
const (
	maxOperations = 1000
	maxMembers    = 20_000 // of all operations of a request together
	maxText       = 512    // bytes of a name or an external ID
)

// The operations, in lower case.
const (
	opAdd     = "add"
	opReplace = "replace"
	opRemove  = "remove"
)

// readPatch reads the body of a PATCH request (RFC 7644 section 3.5.2).
func readPatch(body []byte) ([]operation, error) {
	var p struct{ Operations []operation }
	if json.Unmarshal(body, &p) != nil {
		return nil, invalid("invalidSyntax", "the body is not a PATCH request in JSON")
	}
	if len(p.Operations) == 0 || len(p.Operations) > maxOperations {
		return nil, invalid("invalidSyntax", "a PATCH request has 1 to %d Operations", maxOperations)
	}
	for i := range p.Operations {
		o := &p.Operations[i]
		o.Op = strings.ToLower(o.Op)
		if o.Op != opAdd && o.Op != opReplace && o.Op != opRemove {
			return nil, invalid("invalidSyntax", "op must be add, replace or remove, not %q", o.Op)
		}
		if o.Op != opRemove && len(o.Value) == 0 {
			return nil, invalid("invalidValue", "the operation %s needs a value", o.Op)
		}
		if o.Op == opRemove && o.Path == "" {
			return nil, invalid("noTarget", "the operation remove needs a path")
		}
	}
	return p.Operations, nil
}

// each calls set for every attribute that an operation changes: the attribute in its path or,
// without a path, the attributes of the object in its value.
func (o operation) each(set func(path, json.RawMessage) error) error {
	if o.Path != "" {
		p, err := parsePath(o.Path)
		if err != nil {
			return err
		}
		return set(p, o.Value)
	}
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(o.Value, &attributes); err != nil {
		return invalid("invalidValue", "without a path the value must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		p, err := parsePath(name)
		if err != nil {
			return err
		}
		if err := set(p, attributes[name]); err != nil {
			return err
		}
	}
	return nil
}

// userPatch returns the changes that a PATCH request makes to a person.
func userPatch(body []byte) (c store.SCIMUserChange, err error) {
	operations, err := readPatch(body)
	if err != nil {
		return c, err
	}
	for _, o := range operations {
		err := o.each(func(p path, value json.RawMessage) error {
			if p.sub != "" || p.where != nil {
				return nil // the attribute is not stored
			}
			if o.Op == opRemove {
				value = json.RawMessage(`null`)
			}
			return setUser(&c, p.attribute, value)
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// setUser sets an attribute of a person. Attributes that are not stored are ignored.
func setUser(c *store.SCIMUserChange, attribute string, value json.RawMessage) (err error) {
	switch attribute {
	case "username":
		c.UserName, err = text(attribute, value, true)
	case "externalid":
		c.ExternalID, err = text(attribute, value, false)
	case "displayname":
		c.DisplayName, err = text(attribute, value, false)
	case "active":
		c.Active, err = boolean(attribute, value)
	}
	return err
}

// groupPatch returns the changes that a PATCH request makes to a group.
func groupPatch(body []byte) (c store.SCIMGroupChange, err error) {
	operations, err := readPatch(body)
	if err != nil {
		return c, err
	}
	left := maxMembers
	for _, o := range operations {
		err := o.each(func(p path, value json.RawMessage) error {
			if p.attribute == "members" {
				step, err := memberStep(o.Op, p, value)
				if left -= len(step.IDs); err == nil && left < 0 {
					err = invalid("tooMany", "a request may name at most %d members", maxMembers)
				}
				c.Members = append(c.Members, step)
				return err
			}
			if p.sub != "" || p.where != nil {
				return nil
			}
			if o.Op == opRemove {
				value = json.RawMessage(`null`)
			}
			return setGroup(&c, p.attribute, value)
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// setGroup sets an attribute of a group other than its members. Attributes that are not stored are
// ignored.
func setGroup(c *store.SCIMGroupChange, attribute string, value json.RawMessage) (err error) {
	switch attribute {
	case "displayname":
		c.DisplayName, err = text(attribute, value, true)
	case "externalid":
		c.ExternalID, err = text(attribute, value, false)
	}
	return err
}

// memberStep returns the change that an operation makes to a group's members.
func memberStep(op string, p path, value json.RawMessage) (step store.SCIMMemberChange, err error) {
	step.Action = map[string]store.SCIMAction{opAdd: store.SCIMAdd, opReplace: store.SCIMReplace,
		opRemove: store.SCIMRemove}[op]
	if p.where != nil {
		if op != opRemove || p.sub != "" || len(p.where) != 1 || p.where[0].attribute != "value" {
			return step, invalid("invalidPath", `members can be filtered only to remove one, by members[value eq "id"]`)
		}
		step.IDs = []string{p.where[0].value}
		return step, nil
	}
	if p.sub != "" {
		return step, invalid("invalidPath", "a member's sub-attributes cannot be changed")
	}
	if op == opRemove && isNull(value) {
		step.Action = store.SCIMReplace // replacing the members with none removes all of them
		return step, nil
	}
	step.IDs, err = memberIDs(value)
	return step, err
}

// memberIDs reads members: IDs or objects with a value, in a list or alone.
func memberIDs(value json.RawMessage) (ids []string, err error) {
	if isNull(value) {
		return nil, nil
	}
	list := []json.RawMessage{value}
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte(`[`)) {
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, invalid("invalidValue", "members is not a list")
		}
	}
	if len(list) > maxMembers {
		return nil, invalid("tooMany", "a request may name at most %d members", maxMembers)
	}
	for _, one := range list {
		var m struct {
			Value string `json:"value"`
		}
		if json.Unmarshal(one, &m) != nil && json.Unmarshal(one, &m.Value) != nil || m.Value == "" {
			return nil, invalid("invalidValue", "a member needs the ID of a user as its value")
		}
		ids = append(ids, m.Value)
	}
	return ids, nil
}

func isNull(value json.RawMessage) bool {
	v := strings.TrimSpace(string(value))
	return v == "" || v == "null"
}

// text reads a string. Null is the empty string.
func text(attribute string, value json.RawMessage, required bool) (*string, error) {
	var s string
	if !isNull(value) && json.Unmarshal(value, &s) != nil {
		return nil, invalid("invalidValue", "%s is not a string", attribute)
	}
	switch s = strings.TrimSpace(s); {
	case required && s == "":
		return nil, invalid("invalidValue", "%s is required", attribute)
	case len(s) > maxText || strings.ContainsRune(s, 0):
		return nil, invalid("invalidValue", "%s has more than %d bytes or a NUL character", attribute, maxText)
	}
	return &s, nil
}

// boolean reads a boolean, which may also be a string, in upper or lower case.
func boolean(attribute string, value json.RawMessage) (*bool, error) {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(string(value)), `"`)) {
	case "true":
		return new(true), nil
	case "false":
		return new(false), nil
	}
	return nil, invalid("invalidValue", "%s is neither true nor false", attribute)
}
