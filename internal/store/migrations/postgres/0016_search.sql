-- +goose Up
-- The search by words. A grant repeats the values that a snapshot is found by, so that each value
-- selects a range of an audience in the listing's order, newest first. The values are the owner,
-- the date and time in the name (0 without one, otherwise with a leading 1 that keeps leading
-- zeros), and the label: the part of a name that says more than the target (0 without one). Null
-- means that an earlier release wrote the row and it is not indexed yet.
ALTER TABLE snapshots ADD COLUMN named_day bigint, ADD COLUMN named_time bigint, ADD COLUMN label_id bigint;
ALTER TABLE grants ADD COLUMN owner_id bigint, ADD COLUMN named_day bigint, ADD COLUMN named_time bigint, ADD COLUMN label_id bigint;
CREATE INDEX grants_owner ON grants(audience, owner_id, snapshot) INCLUDE (expires_at) WHERE owner_id > 0;
CREATE INDEX grants_day ON grants(audience, named_day, snapshot) INCLUDE (expires_at) WHERE named_day > 0;
CREATE INDEX grants_time ON grants(audience, named_time, snapshot) INCLUDE (expires_at) WHERE named_time > 0;
CREATE INDEX grants_label ON grants(audience, label_id, snapshot) INCLUDE (expires_at) WHERE label_id > 0;
CREATE INDEX grants_unindexed ON grants(snapshot) WHERE named_day IS NULL;
-- As in 0008: the searched audience may be long.
ALTER TABLE grants ALTER COLUMN owner_id SET (n_distinct = 10), ALTER COLUMN named_day SET (n_distinct = 10),
  ALTER COLUMN named_time SET (n_distinct = 10), ALTER COLUMN label_id SET (n_distinct = 10);

CREATE TABLE labels(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, folded text COLLATE "C" NOT NULL UNIQUE);

-- The words of targets (kind 1), owners (2) and labels (3, without an organization) for the search.
-- They come from org_targets, users and labels. users.words is the text from which the words in the
-- table were made.
CREATE TABLE words(
  org_id bigint NOT NULL, kind bigint NOT NULL, word text COLLATE "C" NOT NULL, id bigint NOT NULL,
  PRIMARY KEY(org_id, kind, word, id));
ALTER TABLE org_targets ADD COLUMN indexed bigint NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN words text NOT NULL DEFAULT '';
CREATE INDEX org_targets_unindexed ON org_targets(org_id, target_id) WHERE indexed = 0;
CREATE INDEX users_unindexed ON users(id) WHERE words <> email || ' ' || name;
