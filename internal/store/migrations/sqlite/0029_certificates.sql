-- +goose Up
-- A snapshot's certificate, as its pusher sent it: an envelope in JSON, or ''. The keys whose
-- certificates an organization accepts; a revoked one stays.
ALTER TABLE uploads ADD COLUMN certificate TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN certificate TEXT NOT NULL DEFAULT '';
CREATE TABLE certificate_keys(
  org_id INTEGER NOT NULL REFERENCES orgs(id), id TEXT NOT NULL, public TEXT NOT NULL, name TEXT NOT NULL,
  created_at INTEGER NOT NULL, revoked_at INTEGER, PRIMARY KEY(org_id, id)) STRICT, WITHOUT ROWID;
