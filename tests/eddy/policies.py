"""Data and helpers that ``policies_test.py`` shares with other tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stop:
    name: str
    queries: int = 1
