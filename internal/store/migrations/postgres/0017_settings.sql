-- +goose Up
-- What the configuration says about an organization, as of the newest start: a
-- JSON object of names and values, with digests in place of secrets. Empty: no
-- start has recorded it.
ALTER TABLE orgs ADD COLUMN settings text NOT NULL DEFAULT '';
