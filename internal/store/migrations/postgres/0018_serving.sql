-- +goose Up
-- A single row that says which programs may serve this database, and where its service was moved.
-- lowest is the newest migration that a program must know, and version is the program that wrote
-- it. moved_to is empty unless `snapcloud transfer` has copied the service.
CREATE TABLE serving(
  id bigint PRIMARY KEY CHECK (id = 1), lowest bigint NOT NULL, version text NOT NULL,
  moved_to text NOT NULL DEFAULT '', moved_at bigint);

-- The newest migration known to the program that closed the organization.
ALTER TABLE orgs ADD COLUMN closed_by bigint NOT NULL DEFAULT 0;
-- 1 for a user who is disabled because the configuration does not list them.
ALTER TABLE users ADD COLUMN unlisted bigint NOT NULL DEFAULT 0;
-- Milliseconds by which the holder's clock was ahead of the database's; null is unknown.
ALTER TABLE leases ADD COLUMN ahead bigint;
