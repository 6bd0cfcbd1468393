-- +goose Up
-- The network that a device login came from, and the time at which a signed-in person first opened
-- that login. When there are too many logins, the network with the most loses those that nobody
-- opened.
ALTER TABLE device_grants ADD COLUMN site TEXT NOT NULL DEFAULT '';
ALTER TABLE device_grants ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE device_grants ADD COLUMN opened_at INTEGER;
CREATE INDEX device_grants_waiting ON device_grants(network, site, address, expires_at, opened_at, created_at, state) WHERE state = 'pending';
CREATE INDEX device_grants_pending ON device_grants(expires_at, state) WHERE state = 'pending';
