-- +goose Up
-- Lines of the audit log that were written with their change and have no number yet. body is the
-- whole line without number and hash. notice_to is the user who gets the line as a notice.
CREATE TABLE audit_waiting(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, org_id bigint NOT NULL REFERENCES orgs(id),
  body text NOT NULL, notice_to bigint);
CREATE INDEX audit_waiting_org ON audit_waiting(org_id, id);

-- The Merkle tree over the log's lines: the hashes that each line completes.
CREATE TABLE audit_tree(
  org_id bigint NOT NULL REFERENCES orgs(id), seq bigint NOT NULL, hashes bytea NOT NULL, PRIMARY KEY(org_id, seq));

-- The tree contains the first size lines, and checkpoint is its signed root.
ALTER TABLE audit_heads ADD COLUMN size bigint NOT NULL DEFAULT 0;
ALTER TABLE audit_heads ADD COLUMN checkpoint text NOT NULL DEFAULT '';
