-- +goose Up
-- The time at which each kind of background work last ended without an error, on any replica.
CREATE TABLE jobs(name text PRIMARY KEY, done_at bigint NOT NULL);
