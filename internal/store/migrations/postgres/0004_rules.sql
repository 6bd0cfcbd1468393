-- +goose Up
-- A channel is a standing rule: it shares the newest snapshot of a target and type with a group or,
-- without a group, org-wide. The grants that it makes name it.
CREATE TABLE channels(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, org_id bigint NOT NULL REFERENCES orgs(id), target text NOT NULL, type text NOT NULL,
  group_id bigint REFERENCES groups(id), created_at bigint NOT NULL, created_by bigint REFERENCES users(id));
CREATE UNIQUE INDEX channels_rule ON channels(org_id, target, type, coalesce(group_id, 0));
ALTER TABLE grants ADD COLUMN channel bigint;
CREATE INDEX grants_channel ON grants(channel, snapshot) WHERE channel IS NOT NULL;

-- Shares that the recipient organization declined. A row stays until the snapshot is shared again.
CREATE TABLE declines(
  snapshot bigint NOT NULL REFERENCES snapshots(key) ON DELETE CASCADE, org_id bigint NOT NULL REFERENCES orgs(id),
  at bigint NOT NULL, PRIMARY KEY(snapshot, org_id));

-- How long a target's snapshots are kept: the last keep_last, and those younger than keep_days. 0
-- means that this condition keeps nothing.
CREATE TABLE retention(
  org_id bigint NOT NULL REFERENCES orgs(id), target text NOT NULL, keep_last bigint NOT NULL, keep_days bigint NOT NULL,
  PRIMARY KEY(org_id, target));

-- Background work that only one replica does at a time.
CREATE TABLE leases(name text PRIMARY KEY, holder text NOT NULL, until bigint NOT NULL);

CREATE TABLE webhooks(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, org_id bigint NOT NULL REFERENCES orgs(id), url text NOT NULL, secret bytea NOT NULL,
  events text NOT NULL, created_at bigint NOT NULL, created_by bigint REFERENCES users(id));
CREATE INDEX webhooks_org ON webhooks(org_id);

-- One row for each event and webhook. It is written with the event's audit line, claimed by one
-- replica at a time and retried until the webhook answers.
CREATE TABLE deliveries(
  id text PRIMARY KEY, webhook_id bigint NOT NULL REFERENCES webhooks(id) ON DELETE CASCADE,
  org_id bigint NOT NULL, seq bigint NOT NULL, attempts bigint NOT NULL DEFAULT 0,
  due_at bigint, -- null: answered, or given up
  status text NOT NULL DEFAULT '', created_at bigint NOT NULL, tried_at bigint);
CREATE INDEX deliveries_due ON deliveries(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_webhook ON deliveries(webhook_id, seq);
