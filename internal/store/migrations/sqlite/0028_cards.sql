-- +goose Up
-- A snapshot's card: head is JSON without the tables, and each row of card_pages has the tables of
-- one page, compressed. with_schema lets the organization that a snapshot is shared with see it.
CREATE TABLE cards(
  snapshot INTEGER PRIMARY KEY REFERENCES snapshots(key) ON DELETE CASCADE, head TEXT NOT NULL, pages INTEGER NOT NULL) STRICT;
CREATE TABLE card_pages(
  snapshot INTEGER NOT NULL REFERENCES cards(snapshot) ON DELETE CASCADE, page INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(snapshot, page)) STRICT, WITHOUT ROWID;
ALTER TABLE grants ADD COLUMN with_schema INTEGER NOT NULL DEFAULT 0;
-- Text of owners and admins about a snapshot; tags is a JSON list.
ALTER TABLE snapshots ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN tags TEXT NOT NULL DEFAULT '';
-- How often each user completed a pull, or all keys of an organization together as user_id 0.
CREATE TABLE pulls(
  snapshot INTEGER NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  user_id INTEGER NOT NULL, times INTEGER NOT NULL, last_at INTEGER NOT NULL,
  PRIMARY KEY(snapshot, org_id, user_id)) STRICT, WITHOUT ROWID;
