package scim

import (
	"maps"
	"net/http"
	"strings"

	"snap/internal/store"
)

// The URNs of RFC 7643 section 10.3 and RFC 7644 section 8.2.
const (
	schemaUser  = "urn:ietf:params:scim:schemas:core:2.0:User"
	schemaGroup = "urn:ietf:params:scim:schemas:core:2.0:Group"
	schemaError = "urn:ietf:params:scim:api:messages:2.0:Error"
	schemaList  = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	schemaCore  = "urn:ietf:params:scim:schemas:core:2.0:"
)

type object = map[string]any

func (h *handler) documentMeta(kind, path string) object {
	return object{"resourceType": kind, "location": h.base + path}
}

// serviceProviderConfig describes what is supported (RFC 7643 section 5).
func (h *handler) serviceProviderConfig() object {
	no := object{"supported": false}
	return object{
		"schemas": []string{schemaCore + "ServiceProviderConfig"},
		"patch":   object{"supported": true}, "filter": object{"supported": true, "maxResults": maxCount},
		"bulk":           object{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"changePassword": no, "sort": no, "etag": no,
		"authenticationSchemes": []object{{"type": "oauthbearertoken", "name": "SCIM key", "primary": true,
			"description": "Bearer token in the header Authorization; the token is an API key of the kind scim"}},
		"meta": h.documentMeta("ServiceProviderConfig", "/ServiceProviderConfig"),
	}
}

// resourceTypes describes the kinds of resources (RFC 7643 section 6).
func (h *handler) resourceTypes() (all []object) {
	for _, t := range []struct{ name, schema, description string }{
		{"User", schemaUser, "A person"}, {"Group", schemaGroup, "A group of people"},
	} {
		all = append(all, object{
			"schemas": []string{schemaCore + "ResourceType"}, "id": t.name, "name": t.name,
			"description": t.description, "endpoint": "/" + t.name + "s", "schema": t.schema,
			"meta": h.documentMeta("ResourceType", "/ResourceTypes/"+t.name),
		})
	}
	return all
}

// schemas describes the attributes that are stored (RFC 7643 section 7).
func (h *handler) schemas() []object {
	attribute := func(name, kind string, other object) object { // other overrides the defaults
		a := object{"name": name, "type": kind, "multiValued": false, "required": false, "caseExact": false,
			"mutability": "readWrite", "returned": "default", "uniqueness": "none"}
		maps.Copy(a, other)
		return a
	}
	value := attribute("value", "string", object{"required": true, "caseExact": true, "mutability": "immutable"})
	members := attribute("members", "complex", object{"multiValued": true, "subAttributes": []object{value}})
	schema := func(id, name string, attributes ...object) object {
		return object{"schemas": []string{schemaCore + "Schema"}, "id": id, "name": name, "description": name,
			"attributes": attributes, "meta": h.documentMeta("Schema", "/Schemas/"+id)}
	}
	externalID := attribute("externalId", "string", object{"caseExact": true, "uniqueness": "server"})
	return []object{
		schema(schemaUser, "User",
			attribute("userName", "string", object{"required": true, "uniqueness": "server"}), externalID,
			attribute("displayName", "string", nil), attribute("active", "boolean", nil)),
		schema(schemaGroup, "Group", attribute("displayName", "string", object{"required": true}), externalID,
			members),
	}
}

func (h *handler) document(d object) action {
	return func(w http.ResponseWriter, _ *http.Request, _ store.Reporter) error {
		writeJSON(w, http.StatusOK, d)
		return nil
	}
}

func (h *handler) documents(all []object) action {
	return func(w http.ResponseWriter, _ *http.Request, _ store.Reporter) error {
		return writeList(w, all, len(all), 1)
	}
}

// documentByID responds with the document that the path names.
func (h *handler) documentByID(all []object) action {
	return func(w http.ResponseWriter, r *http.Request, _ store.Reporter) error {
		for _, d := range all {
			if id, _ := d["id"].(string); strings.EqualFold(id, r.PathValue("id")) {
				writeJSON(w, http.StatusOK, d)
				return nil
			}
		}
		return errNoResource
	}
}
