-- +goose Up
-- The search by words. A grant repeats what a snapshot is found by, so that each
-- is a range of an audience that is ordered newest first, as the listing's are:
-- the owner, the date and time in the name (0 when it has none, else with a 1 in
-- front, which keeps leading zeros), and the label, which is the rest of a name
-- that says more than the target (0 when it does not). Null is not indexed yet:
-- an earlier release wrote the row.
ALTER TABLE snapshots ADD COLUMN named_day bigint, ADD COLUMN named_time bigint, ADD COLUMN label_id bigint;
ALTER TABLE grants ADD COLUMN owner_id bigint, ADD COLUMN named_day bigint, ADD COLUMN named_time bigint, ADD COLUMN label_id bigint;
CREATE INDEX grants_owner ON grants(audience, owner_id, snapshot) INCLUDE (expires_at) WHERE owner_id > 0;
CREATE INDEX grants_day ON grants(audience, named_day, snapshot) INCLUDE (expires_at) WHERE named_day > 0;
CREATE INDEX grants_time ON grants(audience, named_time, snapshot) INCLUDE (expires_at) WHERE named_time > 0;
CREATE INDEX grants_label ON grants(audience, label_id, snapshot) INCLUDE (expires_at) WHERE label_id > 0;
CREATE INDEX grants_unindexed ON grants(snapshot) WHERE named_day IS NULL;
-- As in 0008: whatever is searched for may be long.
ALTER TABLE grants ALTER COLUMN owner_id SET (n_distinct = 10), ALTER COLUMN named_day SET (n_distinct = 10),
  ALTER COLUMN named_time SET (n_distinct = 10), ALTER COLUMN label_id SET (n_distinct = 10);

CREATE TABLE labels(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, folded text COLLATE "C" NOT NULL UNIQUE);

-- The words by which targets (kind 1), owners (2) and labels (3, of no
-- organization) are found. They are made from org_targets, users and labels;
-- users.words is the text that the words in the table were made from.
CREATE TABLE words(
  org_id bigint NOT NULL, kind bigint NOT NULL, word text COLLATE "C" NOT NULL, id bigint NOT NULL,
  PRIMARY KEY(org_id, kind, word, id));
ALTER TABLE org_targets ADD COLUMN indexed bigint NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN words text NOT NULL DEFAULT '';
CREATE INDEX org_targets_unindexed ON org_targets(org_id, target_id) WHERE indexed = 0;
CREATE INDEX users_unindexed ON users(id) WHERE words <> email || ' ' || name;
