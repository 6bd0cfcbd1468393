-- +goose Up
-- The sessions at identity providers that people signed in with, by the claim sid. A back-channel
-- logout may name only that.
CREATE TABLE provider_sessions(
  user_id bigint NOT NULL REFERENCES users(id) ON DELETE CASCADE, sid text NOT NULL, signed_in_at bigint NOT NULL,
  PRIMARY KEY(user_id, sid));
CREATE INDEX provider_sessions_sid ON provider_sessions(sid);
