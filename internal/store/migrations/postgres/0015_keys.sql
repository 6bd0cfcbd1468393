-- +goose Up
-- Organization-level keys see org-wide shares (2), received shares (4) and snapshots that such keys
-- pushed (5). Keys with the scope private are a principal of their own, the organization's negative
-- number, which also sees what admins see (1).
INSERT INTO principals(id, kind) OVERRIDING SYSTEM VALUE SELECT -id, 'keys' FROM orgs;
INSERT INTO membership(principal, kind, audience) SELECT -id, 1, id * 8 + 1 FROM orgs;
INSERT INTO membership(principal, kind, audience) SELECT -id, 2, id * 8 + 2 FROM orgs;
INSERT INTO membership(principal, kind, audience) SELECT -id, 4, id * 8 + 4 FROM orgs;
INSERT INTO membership(principal, kind, audience) SELECT -id, 5, id * 8 + 5 FROM orgs;
INSERT INTO membership(principal, kind, audience) SELECT id, 5, id * 8 + 5 FROM orgs;
DELETE FROM membership WHERE kind = 1 AND principal IN (SELECT id FROM orgs);
INSERT INTO grants(audience, snapshot, target_id, type, created_at)
  SELECT org_id * 8 + 5, key, target_id, type, created_at FROM snapshots WHERE owner_id IS NULL;
