// Package snap holds the vocabulary and the rules of sharing database snapshots. It imports no
// other package of this module, so every package can use its types.
//
// The words, as the specification uses them:
//
//   - A snapshot is one immutable file taken from a target, which is a named database. It belongs
//     to the organization to which it was pushed. Unless an organization-level key pushed it, the
//     user who pushed it is its owner.
//   - A caller is the identity that a request acts for: a user of one organization, or the
//     organization itself.
//   - An audience is a set of callers: one user, an organization's owners and admins, all its
//     members, one SSO group, its organization-level keys, or the members of an organization as
//     recipients of what other organizations share with it.
//   - A grant lets an audience see a snapshot, either until a given time or without end.
//
// The rules are in three files: [Visible] in access.go decides who may see a snapshot, [Allowed] in
// allowed.go decides what they may do with it, and the table in errors.go gives each refusal its
// code, HTTP status and exit code.
package snap
