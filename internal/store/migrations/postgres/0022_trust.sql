-- +goose Up
-- The credentials of CI jobs are keys that a trust rule issued. trust is the rule's fingerprint.
-- token_issuer and token_subject come from the job's token.
ALTER TABLE api_keys ADD COLUMN trust text NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_issuer text NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_subject text NOT NULL DEFAULT '';
-- The trust rules of the configuration at the newest start.
CREATE TABLE trust_rules(
  org_id bigint NOT NULL REFERENCES orgs(id), fingerprint text NOT NULL, PRIMARY KEY(org_id, fingerprint));
-- Used tokens, until they expire, each with the credential that it was exchanged for.
CREATE TABLE exchanged_tokens(hash bytea PRIMARY KEY, key_id bigint NOT NULL, until bigint NOT NULL);
CREATE INDEX exchanged_tokens_until ON exchanged_tokens(until);
