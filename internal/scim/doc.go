// Package scim is the SCIM 2.0 service (RFC 7643, RFC 7644) through which an organization's
// identity provider reports people and groups. It serves /scim/v2/Users and /scim/v2/Groups, and
// the documents that describe these resources. A provider authenticates with the organization's
// SCIM key.
//
// A report creates neither an account nor a way to sign in. It sets the groups that a person has
// from their first sign-in on. A report that a person has left ends their sessions and keys
// immediately. Of a person's attributes, only userName, externalId, displayName and active are
// stored; other attributes are accepted and ignored.
//
// The package accepts the requests of Okta and Microsoft Entra ID, even where they differ from the
// RFCs: operations and attribute names in upper or lower case, booleans as strings, single values
// instead of lists, and a list of members to remove in the value instead of a filter in the path.
package scim
