// Package scim is the SCIM 2.0 service (RFC 7643, RFC 7644) through which an organization's identity
// provider reports people and groups: /scim/v2/Users and /scim/v2/Groups, and the documents that
// describe them. A provider presents the organization's SCIM key.
//
// A report never creates an account and never a way to sign in. It says to which groups somebody
// belongs, from their first sign-in on, and that somebody has left, which ends their sessions and
// keys at once. Of a person only userName, externalId, displayName and active are kept; other
// attributes are accepted and ignored.
//
// The package accepts the requests that Okta and Microsoft Entra ID send, also where they differ
// from the RFCs: operations and attribute names in any case, booleans as text, single values in
// place of lists, and members to remove as a value instead of a filter in the path.
package scim
