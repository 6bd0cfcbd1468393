-- +goose Up
-- Each row says that 1,024 lines of an organization's audit log, starting with line first, are in
-- the object blob. The hash of their subtree is in audit_tree. hash is the hash of the last of
-- these lines, where the chain continues.
CREATE TABLE audit_archive(
  org_id bigint NOT NULL REFERENCES orgs(id), first bigint NOT NULL, blob text NOT NULL, size bigint NOT NULL,
  sha256 text NOT NULL, unpacked bigint NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL,
  hash text NOT NULL, PRIMARY KEY(org_id, first));
