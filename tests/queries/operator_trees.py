"""Data and helpers that ``operator_trees_test.py`` shares with other tests."""

from __future__ import annotations

COLUMNS = "(k STRING, v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
