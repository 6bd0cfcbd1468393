-- +goose Up
-- The credentials of CI jobs are keys that a trust rule issued. trust is the rule's fingerprint.
-- token_issuer and token_subject come from the job's token.
ALTER TABLE api_keys ADD COLUMN trust TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_subject TEXT NOT NULL DEFAULT '';
-- The trust rules of the configuration at the newest start.
CREATE TABLE trust_rules(
  org_id INTEGER NOT NULL REFERENCES orgs(id), fingerprint TEXT NOT NULL, PRIMARY KEY(org_id, fingerprint)) STRICT, WITHOUT ROWID;
-- Used tokens, until they expire, each with the credential that it was exchanged for.
CREATE TABLE exchanged_tokens(hash BLOB PRIMARY KEY, key_id INTEGER NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX exchanged_tokens_until ON exchanged_tokens(until);
