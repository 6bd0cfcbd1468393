-- +goose Up
-- A single row that says which programs may serve this database, and where its service was moved.
-- lowest is the newest migration that a program must know, and version is the program that wrote
-- it. moved_to is empty unless `snapcloud transfer` has copied the service.
CREATE TABLE serving(
  id INTEGER PRIMARY KEY CHECK (id = 1), lowest INTEGER NOT NULL, version TEXT NOT NULL,
  moved_to TEXT NOT NULL DEFAULT '', moved_at INTEGER) STRICT;

-- The newest migration known to the program that closed the organization.
ALTER TABLE orgs ADD COLUMN closed_by INTEGER NOT NULL DEFAULT 0;
-- 1 for a user who is disabled because the configuration does not list them.
ALTER TABLE users ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;
-- Milliseconds by which the holder's clock was ahead of the database's; null is unknown.
ALTER TABLE leases ADD COLUMN ahead INTEGER;
