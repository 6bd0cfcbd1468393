-- +goose Up
-- The person in SCIM whose externalId was the account's external ID until a report changed it. The
-- account still ends with that person.
ALTER TABLE users ADD COLUMN former_scim_user INTEGER;
CREATE INDEX users_former_scim ON users(former_scim_user) WHERE former_scim_user IS NOT NULL;
