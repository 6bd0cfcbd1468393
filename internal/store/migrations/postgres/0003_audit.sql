-- +goose Up
-- The audit log of every organization. Lines are only added. body is the entry as JSON; the other
-- columns are for finding it.
CREATE TABLE audit(
  org_id bigint NOT NULL REFERENCES orgs(id), seq bigint NOT NULL, at bigint NOT NULL, action text NOT NULL,
  actor text NOT NULL, snapshot text NOT NULL, body text NOT NULL, hash text NOT NULL, PRIMARY KEY(org_id, seq));
CREATE INDEX audit_action ON audit(org_id, action, seq);
CREATE INDEX audit_actor ON audit(org_id, actor, seq);
CREATE INDEX audit_snapshot ON audit(org_id, snapshot, seq);

-- The end of every organization's chain. Whoever adds a line locks its row.
CREATE TABLE audit_heads(org_id bigint PRIMARY KEY REFERENCES orgs(id), seq bigint NOT NULL, hash text NOT NULL);
