-- +goose Up
-- external_id identifies a person both in SCIM and in the identity provider's tokens. away marks a
-- user whom the identity provider removed; such a user is disabled until the next sign-in.
-- signed_out_at is the time at which the provider, an admin or the configuration last signed the
-- user out. Sign-ins that began before then are refused.
ALTER TABLE users ADD COLUMN external_id TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN email_verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN away INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN signed_out_at INTEGER NOT NULL DEFAULT 0;
UPDATE users SET external_id = subject;
CREATE INDEX users_external ON users(org_id, external_id);

-- The people that an identity provider reports by SCIM, with or without an account.
CREATE TABLE scim_users(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  user_name TEXT NOT NULL, user_name_folded TEXT NOT NULL, external_id TEXT, display_name TEXT NOT NULL, display_name_folded TEXT NOT NULL,
  active INTEGER NOT NULL, created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL,
  UNIQUE(org_id, user_name_folded), UNIQUE(org_id, external_id)) STRICT;
CREATE INDEX scim_users_display ON scim_users(org_id, display_name_folded);

-- The groups that an identity provider reports, each with its SSO group in this service.
CREATE TABLE scim_groups(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  display_name TEXT NOT NULL, display_name_folded TEXT NOT NULL, external_id TEXT, group_id INTEGER NOT NULL UNIQUE REFERENCES groups(id),
  created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL) STRICT;
CREATE INDEX scim_groups_org ON scim_groups(org_id, display_name_folded);

CREATE TABLE scim_members(
  group_key INTEGER NOT NULL REFERENCES scim_groups(key) ON DELETE CASCADE,
  user_key INTEGER NOT NULL REFERENCES scim_users(key) ON DELETE CASCADE, PRIMARY KEY(group_key, user_key)) STRICT, WITHOUT ROWID;
CREATE INDEX scim_members_user ON scim_members(user_key);
