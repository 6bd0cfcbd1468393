-- +goose Up
-- 1 while the configuration does not list the organization. Then none of its credentials is
-- accepted, and its data is kept unchanged.
ALTER TABLE orgs ADD COLUMN closed bigint NOT NULL DEFAULT 0;
