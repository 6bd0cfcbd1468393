-- +goose Up
-- The stored size of a user or an organization is summed from these indexes alone.
CREATE INDEX snapshots_usage ON snapshots(org_id, coalesce(owner_id, 0), size);
CREATE INDEX uploads_usage ON uploads(org_id, coalesce(owner_id, 0), size);
