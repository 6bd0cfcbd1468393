-- +goose Up
-- 1 while the configuration does not list the organization: then no credential
-- of it counts, and all of it stays as it is.
ALTER TABLE orgs ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
