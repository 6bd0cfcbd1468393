-- +goose Up
-- What a user or an organization stores is added up from these indexes alone.
CREATE INDEX snapshots_usage ON snapshots(org_id, coalesce(owner_id, 0), size);
CREATE INDEX uploads_usage ON uploads(org_id, coalesce(owner_id, 0), size);
