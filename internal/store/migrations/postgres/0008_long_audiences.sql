-- +goose Up
-- A page of a long audience or target must be read in the order of an index and not sorted. The
-- planner does not know which audience a query is for, nor that most queries are for the few long
-- ones. For an average audience of a few rows every index looks equally good, and the planner would
-- read the whole audience and sort it.
ALTER TABLE grants ALTER COLUMN audience SET (n_distinct = 10), ALTER COLUMN target_id SET (n_distinct = 10);
ANALYZE grants;
