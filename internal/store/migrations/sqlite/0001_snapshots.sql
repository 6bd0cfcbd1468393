-- +goose Up
-- Organizations, users and groups share one sequence of identifiers, so that a
-- principal (a user, or an organization acting through a key) is one number.
CREATE TABLE principals(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL) STRICT;

CREATE TABLE orgs(
  id INTEGER PRIMARY KEY REFERENCES principals(id), slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL, policy TEXT NOT NULL) STRICT;

CREATE TABLE users(
  id INTEGER PRIMARY KEY REFERENCES principals(id), org_id INTEGER NOT NULL REFERENCES orgs(id),
  issuer TEXT NOT NULL, subject TEXT NOT NULL, email TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL,
  disabled INTEGER NOT NULL DEFAULT 0, groups_unknown INTEGER NOT NULL DEFAULT 0, groups_as_of INTEGER,
  created_at INTEGER NOT NULL, UNIQUE(org_id, issuer, subject)) STRICT;
CREATE INDEX users_email ON users(org_id, email);

CREATE TABLE groups(
  id INTEGER PRIMARY KEY REFERENCES principals(id), org_id INTEGER NOT NULL REFERENCES orgs(id),
  group_id TEXT NOT NULL, name TEXT NOT NULL, UNIQUE(org_id, group_id)) STRICT;

-- One row: this principal belongs to this audience (snap.Audience). Rewritten
-- at sign-in and at a role change.
CREATE TABLE membership(
  principal INTEGER NOT NULL REFERENCES principals(id), audience INTEGER NOT NULL, PRIMARY KEY(principal, audience)) STRICT, WITHOUT ROWID;
CREATE INDEX membership_audience ON membership(audience, principal);

CREATE TABLE targets(
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id INTEGER NOT NULL REFERENCES orgs(id), name TEXT NOT NULL, UNIQUE(org_id, name)) STRICT;

-- Only complete, verified snapshots have a row.
CREATE TABLE snapshots(
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  owner_id INTEGER REFERENCES users(id), pushed_with INTEGER,
  target_id INTEGER NOT NULL REFERENCES targets(id), name TEXT NOT NULL, type TEXT NOT NULL, engine TEXT NOT NULL,
  size INTEGER NOT NULL, sha256 TEXT NOT NULL, blob TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE INDEX snapshots_sha256 ON snapshots(org_id, sha256);

-- One row: this audience may see this snapshot, until expires_at. Every share
-- is one row here and nothing else; created_by is who shared it.
CREATE TABLE grants(
  audience INTEGER NOT NULL, snapshot INTEGER NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE,
  target_id INTEGER NOT NULL, expires_at INTEGER, created_at INTEGER NOT NULL, created_by INTEGER,
  PRIMARY KEY(audience, snapshot)) STRICT, WITHOUT ROWID;
CREATE INDEX grants_target ON grants(audience, target_id, snapshot, expires_at);
CREATE INDEX grants_snapshot ON grants(snapshot, audience, expires_at);
CREATE INDEX grants_expiry ON grants(expires_at) WHERE expires_at IS NOT NULL;

-- Pushes that have begun and are not complete. No one lists them; only who
-- began one can go on with it.
CREATE TABLE uploads(
  id TEXT PRIMARY KEY, org_id INTEGER NOT NULL REFERENCES orgs(id), owner_id INTEGER REFERENCES users(id), pushed_with INTEGER,
  target TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, engine TEXT NOT NULL,
  size INTEGER NOT NULL, sha256 TEXT NOT NULL, blob TEXT NOT NULL, blob_upload TEXT NOT NULL, part_size INTEGER NOT NULL,
  created_at INTEGER NOT NULL, touched_at INTEGER NOT NULL) STRICT;

-- Secrets of the service that every replica needs, such as the key that signs URLs.
CREATE TABLE secrets(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;

-- Answers kept for Idempotency-Key, for a day.
CREATE TABLE idempotency(
  principal INTEGER NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL,
  created_at INTEGER NOT NULL, PRIMARY KEY(principal, key)) STRICT, WITHOUT ROWID;
