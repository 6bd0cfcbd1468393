-- +goose Up
-- The time of the newest knowledge of a user's role and groups. Claims from before that time are
-- not applied.
ALTER TABLE users ADD COLUMN claims_at bigint NOT NULL DEFAULT 0;
