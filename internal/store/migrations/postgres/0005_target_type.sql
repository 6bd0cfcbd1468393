-- +goose Up
-- For listings of one target and one type. With the index by target alone, a listing would read the
-- whole target to find the few rows of a type, or none.
CREATE INDEX grants_target_type ON grants(audience, target_id, type, snapshot, expires_at);
