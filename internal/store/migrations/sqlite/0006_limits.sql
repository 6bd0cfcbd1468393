-- +goose Up
-- How much of a rate limit is used, over all replicas: all of it is free again
-- at until. Rows of the past count for nothing.
CREATE TABLE rates(bucket TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- A transfer into this database that has not ended: the row with the empty key
-- says from where, the others which objects were copied and verified. A service
-- does not start on a database that has one.
CREATE TABLE transfer(blob TEXT PRIMARY KEY, sha256 TEXT NOT NULL) STRICT, WITHOUT ROWID;
