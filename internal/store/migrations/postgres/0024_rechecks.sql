-- +goose Up
-- The queue of people to recheck with their identity provider. used marks those who used a session
-- or key since the last check. waits_from is the start of the interval until the next check. doubts
-- counts checks with an unknown outcome, after which the refresh token may have been replaced.
ALTER TABLE sign_ins ADD COLUMN org_id bigint NOT NULL DEFAULT 0;
ALTER TABLE sign_ins ADD COLUMN used bigint NOT NULL DEFAULT 0;
ALTER TABLE sign_ins ADD COLUMN waits_from bigint NOT NULL DEFAULT 0;
ALTER TABLE sign_ins ADD COLUMN doubts bigint NOT NULL DEFAULT 0;
UPDATE sign_ins SET waits_from = checked_at, org_id = (SELECT u.org_id FROM users u WHERE u.id = sign_ins.user_id),
  used = CASE WHEN EXISTS(SELECT 1 FROM sessions n WHERE n.user_id = sign_ins.user_id AND n.last_used_at > sign_ins.checked_at)
    OR EXISTS(SELECT 1 FROM api_keys k WHERE k.user_id = sign_ins.user_id AND k.last_used_at > sign_ins.checked_at) THEN 1 ELSE 0 END;
CREATE INDEX sign_ins_due ON sign_ins(org_id, waits_from) WHERE used = 1 AND refresh IS NOT NULL;
DROP INDEX sign_ins_checked;
