-- +goose Up
-- A snapshot's card: head is JSON without the tables, and each row of card_pages has the tables of
-- one page, compressed. with_schema lets the organization that a snapshot is shared with see it.
CREATE TABLE cards(
  snapshot bigint PRIMARY KEY REFERENCES snapshots(key) ON DELETE CASCADE, head text NOT NULL, pages bigint NOT NULL);
CREATE TABLE card_pages(
  snapshot bigint NOT NULL REFERENCES cards(snapshot) ON DELETE CASCADE, page bigint NOT NULL, body bytea NOT NULL,
  PRIMARY KEY(snapshot, page));
ALTER TABLE grants ADD COLUMN with_schema bigint NOT NULL DEFAULT 0;
-- Text of owners and admins about a snapshot; tags is a JSON list.
ALTER TABLE snapshots ADD COLUMN description text NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN tags text NOT NULL DEFAULT '';
-- How often each user completed a pull, or all keys of an organization together as user_id 0.
CREATE TABLE pulls(
  snapshot bigint NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE, org_id bigint NOT NULL REFERENCES orgs(id),
  user_id bigint NOT NULL, times bigint NOT NULL, last_at bigint NOT NULL,
  PRIMARY KEY(snapshot, org_id, user_id));
