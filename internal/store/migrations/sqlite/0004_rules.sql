-- +goose Up
-- A channel is a standing rule: it shares the newest snapshot of a target and type with a group or,
-- without a group, org-wide. The grants that it makes name it.
CREATE TABLE channels(
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id INTEGER NOT NULL REFERENCES orgs(id), target TEXT NOT NULL, type TEXT NOT NULL,
  group_id INTEGER REFERENCES groups(id), created_at INTEGER NOT NULL, created_by INTEGER REFERENCES users(id)) STRICT;
CREATE UNIQUE INDEX channels_rule ON channels(org_id, target, type, coalesce(group_id, 0));
ALTER TABLE grants ADD COLUMN channel INTEGER;
CREATE INDEX grants_channel ON grants(channel, snapshot) WHERE channel IS NOT NULL;

-- Shares that the recipient organization declined. A row stays until the snapshot is shared again.
CREATE TABLE declines(
  snapshot INTEGER NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE, org_id INTEGER NOT NULL REFERENCES orgs(id),
  at INTEGER NOT NULL, PRIMARY KEY(snapshot, org_id)) STRICT, WITHOUT ROWID;

-- How long a target's snapshots are kept: the last keep_last, and those younger than keep_days. 0
-- means that this condition keeps nothing.
CREATE TABLE retention(
  org_id INTEGER NOT NULL REFERENCES orgs(id), target TEXT NOT NULL, keep_last INTEGER NOT NULL, keep_days INTEGER NOT NULL,
  PRIMARY KEY(org_id, target)) STRICT, WITHOUT ROWID;

-- Background work that only one replica does at a time.
CREATE TABLE leases(name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) STRICT;

CREATE TABLE webhooks(
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id INTEGER NOT NULL REFERENCES orgs(id), url TEXT NOT NULL, secret BLOB NOT NULL,
  events TEXT NOT NULL, created_at INTEGER NOT NULL, created_by INTEGER REFERENCES users(id)) STRICT;
CREATE INDEX webhooks_org ON webhooks(org_id);

-- One row for each event and webhook. It is written with the event's audit line, claimed by one
-- replica at a time and retried until the webhook answers.
CREATE TABLE deliveries(
  id TEXT PRIMARY KEY, webhook_id INTEGER NOT NULL REFERENCES webhooks(id) ON DELETE CASCADE,
  org_id INTEGER NOT NULL, seq INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER, -- null: answered, or given up
  status TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, tried_at INTEGER) STRICT;
CREATE INDEX deliveries_due ON deliveries(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_webhook ON deliveries(webhook_id, seq);
