-- +goose Up
-- The used part of each rate limit, over all replicas. until is the time at which the whole limit
-- is free again. Rows whose until has passed have no effect.
CREATE TABLE rates(bucket TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- An unfinished transfer into this database. The row with the empty key names the origin; the
-- others list the objects that were copied and verified. A service does not start on a database
-- with such rows.
CREATE TABLE transfer(blob TEXT PRIMARY KEY, sha256 TEXT NOT NULL) STRICT, WITHOUT ROWID;
