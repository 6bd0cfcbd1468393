-- +goose Up
-- Each webhook has a lane of its own: one replica at a time sends to it, until lane_until. After
-- repeated failures, nothing is sent before next_at. ok_at is the time at which the webhook last
-- accepted a message, and last_number is the number of the newest message. old_secret also signs
-- messages until old_secret_until.
ALTER TABLE webhooks ADD COLUMN lane_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN next_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN ok_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN disabled_at INTEGER;
ALTER TABLE webhooks ADD COLUMN disabled_why TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN old_secret BLOB;
ALTER TABLE webhooks ADD COLUMN old_secret_until INTEGER NOT NULL DEFAULT 0;
-- The number of a message among those of its webhook. 0 means that an earlier release recorded it.
ALTER TABLE deliveries ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deliveries_lane ON deliveries(webhook_id, seq) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_created ON deliveries(created_at);
