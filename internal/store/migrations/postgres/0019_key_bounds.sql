-- +goose Up
-- networks lists the networks from which a key may be used, separated by spaces; if it is empty,
-- any network may. max_key_age is the longest life of a key in milliseconds; 0 means no limit.
ALTER TABLE api_keys ADD COLUMN networks text NOT NULL DEFAULT '';
ALTER TABLE orgs ADD COLUMN max_key_age bigint NOT NULL DEFAULT 0;
