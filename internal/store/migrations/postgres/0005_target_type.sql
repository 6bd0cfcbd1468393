-- +goose Up
-- A listing of one target and one type at once. With the index by target alone
-- it would read all of a target to find the few of a type, or none.
CREATE INDEX grants_target_type ON grants(audience, target_id, type, snapshot, expires_at);
