// Package cloud is the HTTP service of snapcloud: the API on its two mounts, the presigned download
// URLs, health and metrics. The auth service is in package signin, and the object store in package
// blob.
//
// Every route is in routes.go with the action it needs. Before a handler runs, guard.go checks the
// request in an order that reveals nothing to a stranger: who the caller is (401), whether an
// organization-level key would change a share (403, the same for every ID), whether the caller may
// see the snapshot they name (404, with the same response as for one that never existed), and
// whether their kind of credential and their role allow the action (403). Only then is the input
// validated (400). A handler therefore gets only a snapshot that its caller is allowed to act on.
//
// Handlers return errors; errors.go writes them, all in one form (RFC 9457).
package cloud
