-- +goose Up
-- How webhooks write their messages; '' is our own form. How often a channel expects a snapshot, in
-- seconds, or 0; and the key of the newest snapshot when it was last reported as overdue, or -1.
ALTER TABLE webhooks ADD COLUMN format text NOT NULL DEFAULT '';
ALTER TABLE channels ADD COLUMN expect_every bigint NOT NULL DEFAULT 0;
ALTER TABLE channels ADD COLUMN overdue_after bigint NOT NULL DEFAULT -1;
