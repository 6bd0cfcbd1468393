-- +goose Up
-- Lines of the audit log that were written with their change and have no number yet. body is the
-- whole line without number and hash. notice_to is the user who gets the line as a notice.
CREATE TABLE audit_waiting(
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id INTEGER NOT NULL REFERENCES orgs(id),
  body TEXT NOT NULL, notice_to INTEGER) STRICT;
CREATE INDEX audit_waiting_org ON audit_waiting(org_id, id);

-- The Merkle tree over the log's lines: the hashes that each line completes.
CREATE TABLE audit_tree(
  org_id INTEGER NOT NULL REFERENCES orgs(id), seq INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY(org_id, seq)) STRICT, WITHOUT ROWID;

-- The tree contains the first size lines, and checkpoint is its signed root.
ALTER TABLE audit_heads ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit_heads ADD COLUMN checkpoint TEXT NOT NULL DEFAULT '';
