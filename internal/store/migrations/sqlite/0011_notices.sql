-- +goose Up
-- Notices to users: lines of the audit log about their snapshots or sessions that somebody else
-- caused. They are kept for 30 days.
CREATE TABLE notices(
  user_id INTEGER NOT NULL REFERENCES users(id), org_id INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(user_id, org_id, seq)) STRICT, WITHOUT ROWID;
CREATE INDEX notices_at ON notices(user_id, at);
