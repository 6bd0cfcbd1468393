-- +goose Up
-- PostgreSQL's migration of this number tells the planner that audiences and targets are long.
-- SQLite's planner keeps no statistics and reads in the order of an index.
SELECT 1;
