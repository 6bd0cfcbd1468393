-- +goose Up
-- The audit log of every organization. Lines are only added. body is the entry as JSON; the other
-- columns are for finding it.
CREATE TABLE audit(
  org_id INTEGER NOT NULL REFERENCES orgs(id), seq INTEGER NOT NULL, at INTEGER NOT NULL, action TEXT NOT NULL,
  actor TEXT NOT NULL, snapshot TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY(org_id, seq)) STRICT, WITHOUT ROWID;
CREATE INDEX audit_action ON audit(org_id, action, seq);
CREATE INDEX audit_actor ON audit(org_id, actor, seq);
CREATE INDEX audit_snapshot ON audit(org_id, snapshot, seq);

-- The end of every organization's chain. Whoever adds a line locks its row.
CREATE TABLE audit_heads(org_id INTEGER PRIMARY KEY REFERENCES orgs(id), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
