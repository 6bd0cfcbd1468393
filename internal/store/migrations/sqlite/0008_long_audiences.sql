-- +goose Up
-- PostgreSQL is told here that audiences and targets are long. SQLite's planner
-- keeps no statistics and reads in the order of an index as it is.
SELECT 1;
