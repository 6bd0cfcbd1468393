-- +goose Up
-- external_id identifies a person both in SCIM and in the identity provider's tokens. away marks a
-- user whom the identity provider removed; such a user is disabled until the next sign-in.
-- signed_out_at is the time at which the provider, an admin or the configuration last signed the
-- user out. Sign-ins that began before then are refused.
ALTER TABLE users ADD COLUMN external_id text NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN email_verified bigint NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN away bigint NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN signed_out_at bigint NOT NULL DEFAULT 0;
UPDATE users SET external_id = subject;
CREATE INDEX users_external ON users(org_id, external_id);

-- The people that an identity provider reports by SCIM, with or without an account.
CREATE TABLE scim_users(
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, org_id bigint NOT NULL REFERENCES orgs(id),
  user_name text NOT NULL, user_name_folded text NOT NULL, external_id text, display_name text NOT NULL, display_name_folded text NOT NULL,
  active bigint NOT NULL, created_at bigint NOT NULL, changed_at bigint NOT NULL,
  UNIQUE(org_id, user_name_folded), UNIQUE(org_id, external_id));
CREATE INDEX scim_users_display ON scim_users(org_id, display_name_folded);

-- The groups that an identity provider reports, each with its SSO group in this service.
CREATE TABLE scim_groups(
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, org_id bigint NOT NULL REFERENCES orgs(id),
  display_name text NOT NULL, display_name_folded text NOT NULL, external_id text, group_id bigint NOT NULL UNIQUE REFERENCES groups(id),
  created_at bigint NOT NULL, changed_at bigint NOT NULL);
CREATE INDEX scim_groups_org ON scim_groups(org_id, display_name_folded);

CREATE TABLE scim_members(
  group_key bigint NOT NULL REFERENCES scim_groups(key) ON DELETE CASCADE,
  user_key bigint NOT NULL REFERENCES scim_users(key) ON DELETE CASCADE, PRIMARY KEY(group_key, user_key));
CREATE INDEX scim_members_user ON scim_members(user_key);
