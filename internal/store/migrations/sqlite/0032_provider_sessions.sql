-- +goose Up
-- The sessions at identity providers that people signed in with, by the claim sid. A back-channel
-- logout may name only that.
CREATE TABLE provider_sessions(
  user_id INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, sid TEXT NOT NULL, signed_in_at INTEGER NOT NULL,
  PRIMARY KEY(user_id, sid)) STRICT, WITHOUT ROWID;
CREATE INDEX provider_sessions_sid ON provider_sessions(sid);
