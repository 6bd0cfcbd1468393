-- +goose Up
-- Keys, cookies, refresh tokens and device codes are stored only as their SHA-256. They have at
-- least 128 random bits, so they cannot be guessed from a plain hash.
CREATE TABLE api_keys(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash bytea NOT NULL UNIQUE, kind text NOT NULL, name text NOT NULL, hint text NOT NULL,
  org_id bigint NOT NULL REFERENCES orgs(id), user_id bigint REFERENCES users(id), scopes text NOT NULL,
  created_at bigint NOT NULL, created_by bigint REFERENCES users(id),
  expires_at bigint, last_used_at bigint, revoked_at bigint);
CREATE INDEX api_keys_org ON api_keys(org_id);
CREATE INDEX api_keys_user ON api_keys(user_id);

-- A signed-in device or browser. It is live until the earliest of ended_at, idle_until and
-- expires_at. hash is the hash of a browser's cookie or of another auth service's access token.
CREATE TABLE sessions(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id bigint NOT NULL REFERENCES users(id), kind text NOT NULL, hash bytea UNIQUE,
  name text NOT NULL, address text NOT NULL, client_id text NOT NULL, scope text NOT NULL,
  created_at bigint NOT NULL, last_used_at bigint NOT NULL, idle_until bigint NOT NULL, expires_at bigint NOT NULL, ended_at bigint);
CREATE INDEX sessions_user ON sessions(user_id);
CREATE INDEX sessions_expiry ON sessions(expires_at);

-- The chain of a session's refresh tokens. An unused token that a retry replaced is superseded.
CREATE TABLE refresh_tokens(
  hash bytea PRIMARY KEY, session_id bigint NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, parent bytea,
  used_at bigint, superseded bigint NOT NULL DEFAULT 0);
CREATE INDEX refresh_tokens_session ON refresh_tokens(session_id);
CREATE INDEX refresh_tokens_parent ON refresh_tokens(parent);

-- Logins by device grant that have not ended. state is pending, approved, denied or used.
CREATE TABLE device_grants(
  hash bytea PRIMARY KEY, user_code text NOT NULL UNIQUE, client_id text NOT NULL, scope text NOT NULL,
  program text NOT NULL, host text NOT NULL, address text NOT NULL,
  created_at bigint NOT NULL, expires_at bigint NOT NULL, wait_ms bigint NOT NULL, polled_at bigint,
  state text NOT NULL, reason text NOT NULL DEFAULT '', user_id bigint REFERENCES users(id));
CREATE INDEX device_grants_address ON device_grants(address, expires_at);
CREATE INDEX device_grants_expiry ON device_grants(expires_at);

-- Unfinished sign-ins at an identity provider, by the hash of their state.
CREATE TABLE upstream_logins(
  hash bytea PRIMARY KEY, browser bytea NOT NULL, org_id bigint NOT NULL REFERENCES orgs(id),
  nonce text NOT NULL, verifier text NOT NULL, next text NOT NULL, expires_at bigint NOT NULL);
CREATE INDEX upstream_logins_expiry ON upstream_logins(expires_at);

-- The keys that sign access tokens, shared by all replicas. The newest one signs.
CREATE TABLE signing_keys(kid text PRIMARY KEY, private bytea NOT NULL, created_at bigint NOT NULL);

-- The number of failures, such as of user codes that one address tried.
CREATE TABLE misses(bucket text PRIMARY KEY, count bigint NOT NULL, until bigint NOT NULL);
CREATE INDEX misses_until ON misses(until);
