-- +goose Up
-- Each row says that 1,024 lines of an organization's audit log, starting with line first, are in
-- the object blob. The hash of their subtree is in audit_tree. hash is the hash of the last of
-- these lines, where the chain continues.
CREATE TABLE audit_archive(
  org_id INTEGER NOT NULL REFERENCES orgs(id), first INTEGER NOT NULL, blob TEXT NOT NULL, size INTEGER NOT NULL,
  sha256 TEXT NOT NULL, unpacked INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  hash TEXT NOT NULL, PRIMARY KEY(org_id, first)) STRICT, WITHOUT ROWID;
