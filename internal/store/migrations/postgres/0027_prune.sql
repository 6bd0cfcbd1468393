-- +goose Up
-- For pruning accounts whose people left: the accounts by the time at which they left, and what
-- still names an account.
CREATE INDEX users_left ON users(signed_out_at) WHERE away = 1 OR unlisted = 1;
CREATE INDEX snapshots_owner ON snapshots(owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX grants_by ON grants(created_by) WHERE created_by IS NOT NULL;
