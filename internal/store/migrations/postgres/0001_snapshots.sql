-- +goose Up
-- Organizations, users and groups share one sequence of identifiers, so that one number names a
-- principal: a user, or an organization that acts through a key.
CREATE TABLE principals(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL);

CREATE TABLE orgs(
  id bigint PRIMARY KEY REFERENCES principals(id), slug text NOT NULL UNIQUE, name text NOT NULL, policy text NOT NULL);

CREATE TABLE users(
  id bigint PRIMARY KEY REFERENCES principals(id), org_id bigint NOT NULL REFERENCES orgs(id),
  issuer text NOT NULL, subject text NOT NULL, email text NOT NULL, email_folded text NOT NULL, name text NOT NULL, role text NOT NULL,
  disabled bigint NOT NULL DEFAULT 0, groups_unknown bigint NOT NULL DEFAULT 0, groups_why text NOT NULL DEFAULT '', groups_as_of bigint,
  created_at bigint NOT NULL, UNIQUE(org_id, issuer, subject));
CREATE INDEX users_email ON users(org_id, email_folded);

-- newest is at least the key of the newest snapshot shared with the group, so that a listing can
-- skip groups that have nothing for its page.
CREATE TABLE groups(
  id bigint PRIMARY KEY REFERENCES principals(id), org_id bigint NOT NULL REFERENCES orgs(id),
  group_id text NOT NULL, name text NOT NULL, newest bigint NOT NULL DEFAULT 0, UNIQUE(org_id, group_id));

-- Each row says that a principal belongs to an audience (snap.Audience). kind is the audience's
-- kind. The rows are rewritten at each sign-in and change of role.
CREATE TABLE membership(
  principal bigint NOT NULL REFERENCES principals(id), kind bigint NOT NULL, audience bigint NOT NULL,
  PRIMARY KEY(principal, kind, audience));
CREATE INDEX membership_audience ON membership(audience, principal);

-- The names of databases. A name has one row for the whole service, so that a filter by target
-- compares one number, no matter who pushed.
CREATE TABLE targets(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);

-- The targets that an organization can find by searching, by their folded names: those that it
-- pushed and those that others shared with it.
CREATE TABLE org_targets(
  org_id bigint NOT NULL REFERENCES orgs(id), target_id bigint NOT NULL REFERENCES targets(id), folded text NOT NULL,
  PRIMARY KEY(org_id, target_id));

-- Only complete, verified snapshots have a row. target repeats the target's name, and folded is the
-- snapshot's name as the search compares it. widened is 0 until a group or another organization
-- gets a grant, so that a listing need not count those shares.
CREATE TABLE snapshots(
  key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, org_id bigint NOT NULL REFERENCES orgs(id),
  owner_id bigint REFERENCES users(id), pushed_with bigint,
  target_id bigint NOT NULL REFERENCES targets(id), target text NOT NULL, name text NOT NULL, folded text COLLATE "C" NOT NULL,
  type text NOT NULL, engine text NOT NULL, size bigint NOT NULL, sha256 text NOT NULL, blob text NOT NULL,
  widened bigint NOT NULL DEFAULT 0, created_at bigint NOT NULL);
CREATE INDEX snapshots_sha256 ON snapshots(org_id, sha256);
CREATE INDEX snapshots_folded ON snapshots(folded);
CREATE INDEX snapshots_blob ON snapshots(blob);

-- Each row lets an audience see a snapshot until expires_at. A share is exactly one such row;
-- created_by is the user who shared. The snapshot's target and type are repeated, because every
-- filter of a listing needs its column in an index that starts with the audience and ends with the
-- snapshot.
CREATE TABLE grants(
  audience bigint NOT NULL, snapshot bigint NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE,
  target_id bigint NOT NULL, type text NOT NULL, expires_at bigint, created_at bigint NOT NULL, created_by bigint,
  PRIMARY KEY(audience, snapshot) INCLUDE (expires_at));
CREATE INDEX grants_target ON grants(audience, target_id, snapshot) INCLUDE (type, expires_at);
CREATE INDEX grants_type ON grants(audience, type, snapshot) INCLUDE (expires_at);
CREATE INDEX grants_snapshot ON grants(snapshot, audience) INCLUDE (expires_at);
CREATE INDEX grants_expiry ON grants(expires_at) WHERE expires_at IS NOT NULL;

-- Pushes that have begun and are not complete. They are not listed to others; only the user who
-- began a push can resume it.
CREATE TABLE uploads(
  id text PRIMARY KEY, org_id bigint NOT NULL REFERENCES orgs(id), owner_id bigint REFERENCES users(id), pushed_with bigint,
  target text NOT NULL, name text NOT NULL, type text NOT NULL, engine text NOT NULL,
  size bigint NOT NULL, sha256 text NOT NULL, blob text NOT NULL, blob_upload text NOT NULL, part_size bigint NOT NULL,
  created_at bigint NOT NULL, touched_at bigint NOT NULL);
CREATE INDEX uploads_touched ON uploads(touched_at);
CREATE INDEX uploads_sha256 ON uploads(org_id, sha256);

-- Objects in the object store that no row needs any more and that will be removed. A row is written
-- in the transaction that releases the object, so that none is forgotten.
CREATE TABLE garbage(blob text PRIMARY KEY, blob_upload text NOT NULL);

-- The service's secrets that every replica needs, such as the key that signs URLs.
CREATE TABLE secrets(name text PRIMARY KEY, value bytea NOT NULL);

-- Answers kept for a day for their Idempotency-Key. Status 0 means that the request is still
-- running.
CREATE TABLE idempotency(
  principal bigint NOT NULL, key text NOT NULL, request bytea NOT NULL, status bigint NOT NULL, body bytea NOT NULL,
  created_at bigint NOT NULL, PRIMARY KEY(principal, key));
CREATE INDEX idempotency_created ON idempotency(created_at);
