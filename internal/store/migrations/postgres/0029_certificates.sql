-- +goose Up
-- A snapshot's certificate, as its pusher sent it: an envelope in JSON, or ''. The keys whose
-- certificates an organization accepts; a revoked one stays.
ALTER TABLE uploads ADD COLUMN certificate text NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN certificate text NOT NULL DEFAULT '';
CREATE TABLE certificate_keys(
  org_id bigint NOT NULL REFERENCES orgs(id), id text NOT NULL, public text NOT NULL, name text NOT NULL,
  created_at bigint NOT NULL, revoked_at bigint, PRIMARY KEY(org_id, id));
