-- +goose Up
-- networks: those that a key may be used from, separated by spaces; none means
-- any. max_key_age: the longest life of a key in milliseconds; 0 is no limit.
ALTER TABLE api_keys ADD COLUMN networks text NOT NULL DEFAULT '';
ALTER TABLE orgs ADD COLUMN max_key_age bigint NOT NULL DEFAULT 0;
