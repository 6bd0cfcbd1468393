-- +goose Up
-- Organizations, users and groups share one sequence of identifiers, so that one number names a
-- principal: a user, or an organization that acts through a key.
CREATE TABLE principals(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL) STRICT;

CREATE TABLE orgs(
  id INTEGER PRIMARY KEY REFERENCES principals(id), slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL, policy TEXT NOT NULL) STRICT;

CREATE TABLE users(
  id INTEGER PRIMARY KEY REFERENCES principals(id), org_id INTEGER NOT NULL REFERENCES orgs(id),
  issuer TEXT NOT NULL, subject TEXT NOT NULL, email TEXT NOT NULL, email_folded TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL,
  disabled INTEGER NOT NULL DEFAULT 0, groups_unknown INTEGER NOT NULL DEFAULT 0, groups_why TEXT NOT NULL DEFAULT '', groups_as_of INTEGER,
  created_at INTEGER NOT NULL, UNIQUE(org_id, issuer, subject)) STRICT;
CREATE INDEX users_email ON users(org_id, email_folded);

-- newest is at least the key of the newest snapshot shared with the group, so that a listing can
-- skip groups that have nothing for its page.
CREATE TABLE groups(
  id INTEGER PRIMARY KEY REFERENCES principals(id), org_id INTEGER NOT NULL REFERENCES orgs(id),
  group_id TEXT NOT NULL, name TEXT NOT NULL, newest INTEGER NOT NULL DEFAULT 0, UNIQUE(org_id, group_id)) STRICT;

-- Each row says that a principal belongs to an audience (snap.Audience). kind is the audience's
-- kind. The rows are rewritten at each sign-in and change of role.
CREATE TABLE membership(
  principal INTEGER NOT NULL REFERENCES principals(id), kind INTEGER NOT NULL, audience INTEGER NOT NULL,
  PRIMARY KEY(principal, kind, audience)) STRICT, WITHOUT ROWID;
CREATE INDEX membership_audience ON membership(audience, principal);

-- The names of databases. A name has one row for the whole service, so that a filter by target
-- compares one number, no matter who pushed.
CREATE TABLE targets(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE) STRICT;

-- The targets that an organization can find by searching, by their folded names: those that it
-- pushed and those that others shared with it.
CREATE TABLE org_targets(
  org_id INTEGER NOT NULL REFERENCES orgs(id), target_id INTEGER NOT NULL REFERENCES targets(id), folded TEXT NOT NULL,
  PRIMARY KEY(org_id, target_id)) STRICT, WITHOUT ROWID;

-- Only complete, verified snapshots have a row. target repeats the target's name, and folded is the
-- snapshot's name as the search compares it. widened is 0 until a group or another organization
-- gets a grant, so that a listing need not count those shares.
CREATE TABLE snapshots(
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  owner_id INTEGER REFERENCES users(id), pushed_with INTEGER,
  target_id INTEGER NOT NULL REFERENCES targets(id), target TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL,
  type TEXT NOT NULL, engine TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL, blob TEXT NOT NULL,
  widened INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL) STRICT;
CREATE INDEX snapshots_sha256 ON snapshots(org_id, sha256);
CREATE INDEX snapshots_folded ON snapshots(folded);
CREATE INDEX snapshots_blob ON snapshots(blob);

-- Each row lets an audience see a snapshot until expires_at. A share is exactly one such row;
-- created_by is the user who shared. The snapshot's target and type are repeated, because every
-- filter of a listing needs its column in an index that starts with the audience and ends with the
-- snapshot.
CREATE TABLE grants(
  audience INTEGER NOT NULL, snapshot INTEGER NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE,
  target_id INTEGER NOT NULL, type TEXT NOT NULL, expires_at INTEGER, created_at INTEGER NOT NULL, created_by INTEGER,
  PRIMARY KEY(audience, snapshot)) STRICT, WITHOUT ROWID;
CREATE INDEX grants_target ON grants(audience, target_id, snapshot, type, expires_at);
CREATE INDEX grants_type ON grants(audience, type, snapshot, expires_at);
CREATE INDEX grants_snapshot ON grants(snapshot, audience, expires_at);
CREATE INDEX grants_expiry ON grants(expires_at) WHERE expires_at IS NOT NULL;

-- Pushes that have begun and are not complete. They are not listed to others; only the user who
-- began a push can resume it.
CREATE TABLE uploads(
  id TEXT PRIMARY KEY, org_id INTEGER NOT NULL REFERENCES orgs(id), owner_id INTEGER REFERENCES users(id), pushed_with INTEGER,
  target TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, engine TEXT NOT NULL,
  size INTEGER NOT NULL, sha256 TEXT NOT NULL, blob TEXT NOT NULL, blob_upload TEXT NOT NULL, part_size INTEGER NOT NULL,
  created_at INTEGER NOT NULL, touched_at INTEGER NOT NULL) STRICT;
CREATE INDEX uploads_touched ON uploads(touched_at);
CREATE INDEX uploads_sha256 ON uploads(org_id, sha256);

-- Objects in the object store that no row needs any more and that will be removed. A row is written
-- in the transaction that releases the object, so that none is forgotten.
CREATE TABLE garbage(blob TEXT PRIMARY KEY, blob_upload TEXT NOT NULL) STRICT;

-- The service's secrets that every replica needs, such as the key that signs URLs.
CREATE TABLE secrets(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;

-- Answers kept for a day for their Idempotency-Key. Status 0 means that the request is still
-- running.
CREATE TABLE idempotency(
  principal INTEGER NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL,
  created_at INTEGER NOT NULL, PRIMARY KEY(principal, key)) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency(created_at);
