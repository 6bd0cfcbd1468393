-- +goose Up
-- The search by words. A grant repeats the values that a snapshot is found by, so that each value
-- selects a range of an audience in the listing's order, newest first. The values are the owner,
-- the date and time in the name (0 without one, otherwise with a leading 1 that keeps leading
-- zeros), and the label: the part of a name that says more than the target (0 without one). Null
-- means that an earlier release wrote the row and it is not indexed yet.
ALTER TABLE snapshots ADD COLUMN named_day INTEGER;
ALTER TABLE snapshots ADD COLUMN named_time INTEGER;
ALTER TABLE snapshots ADD COLUMN label_id INTEGER;
ALTER TABLE grants ADD COLUMN owner_id INTEGER;
ALTER TABLE grants ADD COLUMN named_day INTEGER;
ALTER TABLE grants ADD COLUMN named_time INTEGER;
ALTER TABLE grants ADD COLUMN label_id INTEGER;
CREATE INDEX grants_owner ON grants(audience, owner_id, snapshot, expires_at) WHERE owner_id > 0;
CREATE INDEX grants_day ON grants(audience, named_day, snapshot, expires_at) WHERE named_day > 0;
CREATE INDEX grants_time ON grants(audience, named_time, snapshot, expires_at) WHERE named_time > 0;
CREATE INDEX grants_label ON grants(audience, label_id, snapshot, expires_at) WHERE label_id > 0;
CREATE INDEX grants_unindexed ON grants(snapshot) WHERE named_day IS NULL;

CREATE TABLE labels(id INTEGER PRIMARY KEY AUTOINCREMENT, folded TEXT NOT NULL UNIQUE) STRICT;

-- The words of targets (kind 1), owners (2) and labels (3, without an organization) for the search.
-- They come from org_targets, users and labels. users.words is the text from which the words in the
-- table were made.
CREATE TABLE words(
  org_id INTEGER NOT NULL, kind INTEGER NOT NULL, word TEXT NOT NULL, id INTEGER NOT NULL,
  PRIMARY KEY(org_id, kind, word, id)) STRICT, WITHOUT ROWID;
ALTER TABLE org_targets ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN words TEXT NOT NULL DEFAULT '';
CREATE INDEX org_targets_unindexed ON org_targets(org_id, target_id) WHERE indexed = 0;
CREATE INDEX users_unindexed ON users(id) WHERE words <> email || ' ' || name;
