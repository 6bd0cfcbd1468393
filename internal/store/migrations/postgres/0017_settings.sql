-- +goose Up
-- The configuration of an organization at the newest start: a JSON object of names and values, with
-- digests in place of secrets. It is empty until a start records it.
ALTER TABLE orgs ADD COLUMN settings text NOT NULL DEFAULT '';
