-- +goose Up
-- The time at which each kind of background work last ended without an error, on any replica.
CREATE TABLE jobs(name TEXT PRIMARY KEY, done_at INTEGER NOT NULL) STRICT;
