-- +goose Up
-- The networks that a device login came from, and when a signed-in person first
-- looked at it: of too many logins, the busiest network gives up those that
-- nobody looked at.
ALTER TABLE device_grants ADD COLUMN site text NOT NULL DEFAULT '';
ALTER TABLE device_grants ADD COLUMN network text NOT NULL DEFAULT '';
ALTER TABLE device_grants ADD COLUMN opened_at bigint;
CREATE INDEX device_grants_waiting ON device_grants(network, site, address, expires_at, opened_at, created_at, state) WHERE state = 'pending';
CREATE INDEX device_grants_pending ON device_grants(expires_at, state) WHERE state = 'pending';
