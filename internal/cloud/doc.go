// Package cloud is the HTTP service of snapcloud: the API on its two mounts,
// the presigned download URLs, health and metrics, with the auth service and
// the storage behind it.
//
// Every route is in routes.go with the action it needs. Before a handler runs,
// guard.go has answered the four questions in the one order that tells a
// stranger nothing: who is calling (401), may they see what they address (404,
// the same bytes as for what never existed), does their kind of credential
// allow it and does their role (403). Only then is the input looked at (400). A
// handler therefore holds a snapshot that its caller may act on.
//
// Handlers return errors; errors.go writes them, all in one form (RFC 9457).
package cloud
