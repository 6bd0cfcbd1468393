-- +goose Up
-- Keys, cookies, refresh tokens and device codes are stored only as their SHA-256. They have at
-- least 128 random bits, so they cannot be guessed from a plain hash.
CREATE TABLE api_keys(
  id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL, hint TEXT NOT NULL,
  org_id INTEGER NOT NULL REFERENCES orgs(id), user_id INTEGER REFERENCES users(id), scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL, created_by INTEGER REFERENCES users(id),
  expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER) STRICT;
CREATE INDEX api_keys_org ON api_keys(org_id);
CREATE INDEX api_keys_user ON api_keys(user_id);

-- A signed-in device or browser. It is live until the earliest of ended_at, idle_until and
-- expires_at. hash is the hash of a browser's cookie or of another auth service's access token.
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL REFERENCES users(id), kind TEXT NOT NULL, hash BLOB UNIQUE,
  name TEXT NOT NULL, address TEXT NOT NULL, client_id TEXT NOT NULL, scope TEXT NOT NULL,
  created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL, idle_until INTEGER NOT NULL, expires_at INTEGER NOT NULL, ended_at INTEGER) STRICT;
CREATE INDEX sessions_user ON sessions(user_id);
CREATE INDEX sessions_expiry ON sessions(expires_at);

-- The chain of a session's refresh tokens. An unused token that a retry replaced is superseded.
CREATE TABLE refresh_tokens(
  hash BLOB PRIMARY KEY, session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, parent BLOB,
  used_at INTEGER, superseded INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_session ON refresh_tokens(session_id);
CREATE INDEX refresh_tokens_parent ON refresh_tokens(parent);

-- Logins by device grant that have not ended. state is pending, approved, denied or used.
CREATE TABLE device_grants(
  hash BLOB PRIMARY KEY, user_code TEXT NOT NULL UNIQUE, client_id TEXT NOT NULL, scope TEXT NOT NULL,
  program TEXT NOT NULL, host TEXT NOT NULL, address TEXT NOT NULL,
  created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, wait_ms INTEGER NOT NULL, polled_at INTEGER,
  state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', user_id INTEGER REFERENCES users(id)) STRICT, WITHOUT ROWID;
CREATE INDEX device_grants_address ON device_grants(address, expires_at);
CREATE INDEX device_grants_expiry ON device_grants(expires_at);

-- Unfinished sign-ins at an identity provider, by the hash of their state.
CREATE TABLE upstream_logins(
  hash BLOB PRIMARY KEY, browser BLOB NOT NULL, org_id INTEGER NOT NULL REFERENCES orgs(id),
  nonce TEXT NOT NULL, verifier TEXT NOT NULL, next TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX upstream_logins_expiry ON upstream_logins(expires_at);

-- The keys that sign access tokens, shared by all replicas. The newest one signs.
CREATE TABLE signing_keys(kid TEXT PRIMARY KEY, private BLOB NOT NULL, created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- The number of failures, such as of user codes that one address tried.
CREATE TABLE misses(bucket TEXT PRIMARY KEY, count INTEGER NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX misses_until ON misses(until);
