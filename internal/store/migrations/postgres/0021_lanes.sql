-- +goose Up
-- Each webhook is a lane of its own: one replica at a time sends to it, until
-- lane_until. After failures in a row nothing is sent before next_at. ok_at is when
-- a message was last accepted, last_number the number of the newest message.
-- old_secret signs too until old_secret_until.
ALTER TABLE webhooks ADD COLUMN lane_until bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN next_at bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failures bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN ok_at bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN last_number bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN disabled_at bigint;
ALTER TABLE webhooks ADD COLUMN disabled_why text NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN old_secret bytea;
ALTER TABLE webhooks ADD COLUMN old_secret_until bigint NOT NULL DEFAULT 0;
-- Counts the messages of a webhook; 0 was recorded by an earlier release.
ALTER TABLE deliveries ADD COLUMN number bigint NOT NULL DEFAULT 0;
CREATE INDEX deliveries_lane ON deliveries(webhook_id, seq) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_created ON deliveries(created_at);
