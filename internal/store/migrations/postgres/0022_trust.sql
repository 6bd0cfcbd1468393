-- +goose Up
-- Credentials of CI jobs are keys that a trust rule gave: trust is the rule's
-- fingerprint, and token_issuer and token_subject are those of the job's token.
ALTER TABLE api_keys ADD COLUMN trust text NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_issuer text NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN token_subject text NOT NULL DEFAULT '';
-- The rules of the configuration, as of the newest start.
CREATE TABLE trust_rules(
  org_id bigint NOT NULL REFERENCES orgs(id), fingerprint text NOT NULL, PRIMARY KEY(org_id, fingerprint));
-- Tokens that were used, until they expire, and the credential that each was used for.
CREATE TABLE exchanged_tokens(hash bytea PRIMARY KEY, key_id bigint NOT NULL, until bigint NOT NULL);
CREATE INDEX exchanged_tokens_until ON exchanged_tokens(until);
