-- +goose Up
-- What is shared with groups, newest first: for a caller in very many groups one
-- range of it costs less than a look at each group.
CREATE INDEX grants_groups ON grants(snapshot, audience, expires_at) WHERE audience & 7 = 3;
