-- +goose Up
-- Notices to users: lines of the audit log about their snapshots or sessions that somebody else
-- caused. They are kept for 30 days.
CREATE TABLE notices(
  user_id bigint NOT NULL REFERENCES users(id), org_id bigint NOT NULL, seq bigint NOT NULL, at bigint NOT NULL,
  PRIMARY KEY(user_id, org_id, seq));
CREATE INDEX notices_at ON notices(user_id, at);
