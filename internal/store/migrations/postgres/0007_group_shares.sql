-- +goose Up
-- Snapshots shared with groups, newest first. For a caller in very many groups, one range of this
-- index costs less than a lookup for each group.
CREATE INDEX grants_groups ON grants(snapshot, audience) INCLUDE (expires_at) WHERE audience & 7 = 3;
