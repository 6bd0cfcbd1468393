-- +goose Up
-- Requests for access, by the ID that somebody typed. Whether there is such a snapshot, and whose it
-- is, is looked up only for those who may answer. told is 1 when the request was reported to them,
-- or when there is no such snapshot.
CREATE TABLE access_requests(
  id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, snapshot_id TEXT NOT NULL, reason TEXT NOT NULL,
  created_at INTEGER NOT NULL, state TEXT NOT NULL, told INTEGER NOT NULL DEFAULT 0,
  UNIQUE(user_id, snapshot_id)) STRICT;
CREATE INDEX access_requests_snapshot ON access_requests(snapshot_id);
CREATE INDEX access_requests_created ON access_requests(created_at);
CREATE INDEX access_requests_new ON access_requests(id) WHERE told = 0;
-- The end of a share that was reported as near.
ALTER TABLE grants ADD COLUMN told_expiry INTEGER NOT NULL DEFAULT 0;
