// Package snap holds the words and the rules of sharing database snapshots.
// It imports nothing else of this module, so every other package can speak its
// language.
//
// The words, as the specification uses them:
//
//   - A snapshot is one immutable file taken from a target, the name of a
//     database. It belongs to the organization it was pushed in and, unless an
//     organization-level key pushed it, to the user who pushed it: its owner.
//   - A caller is who a request acts for: a user of one organization, or the
//     organization itself.
//   - An audience is a set of callers: one user, an organization's owners and
//     admins, all its members, one SSO group, or the members of an
//     organization as recipients of what other organizations share with it.
//   - A grant names an audience that may see a snapshot, until a time.
//
// The rules stand on three pages: [Visible] in access.go says who may see a
// snapshot, [Allowed] in allowed.go what they may do with it, and the table in
// errors.go what every refusal is called, on the wire and as an exit code.
package snap
