-- +goose Up
-- The time of each user's last interactive sign-in, and the data for asking their identity provider
-- again. refresh is the provider's refresh token, sealed.
CREATE TABLE sign_ins(
  user_id bigint PRIMARY KEY REFERENCES users(id), signed_in_at bigint NOT NULL, refresh bytea,
  sid text NOT NULL DEFAULT '', -- the session at the identity provider
  checked_at bigint NOT NULL, claimed_until bigint NOT NULL DEFAULT 0, not_before bigint NOT NULL DEFAULT 0);
CREATE INDEX sign_ins_checked ON sign_ins(checked_at) WHERE refresh IS NOT NULL;
-- Used logout tokens, until they expire.
CREATE TABLE logout_tokens(hash bytea PRIMARY KEY, until bigint NOT NULL);
INSERT INTO sign_ins(user_id, signed_in_at, checked_at)
  SELECT id, coalesce(groups_as_of, created_at), coalesce(groups_as_of, created_at) FROM users;
