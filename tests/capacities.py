"""The least room that structures can begin with, so that few rows take them through all of their growth, and
memory that is short most of the time, so that sealed rows are read from disk.

Tests of what an engine answers begin so; those with many rows begin as a broker does.
"""

from __future__ import annotations

from typing import Any

from engine.dataflow.buffers.settings import StateSettings
from engine.engine import Engine
from engine.model.capacities import Capacities
from engine.model.limits import Limits
from engine.model.persistence import StateSource
from tests.spill import OftenSpilled


def small() -> StateSettings:
    """Settings of state that begins with room for one item, and whose sealed rows are often on disk."""
    return StateSettings(Capacities(1, OftenSpilled()))


def small_engine(limits: Limits | None = None, **others: Any) -> Engine:
    """An engine with such state. others: as :class:`engine.engine.Engine` has them."""
    return Engine(limits, state=small(), **others)


def small_restored(store: StateSource, limits: Limits | None = None, **others: Any) -> Engine:
    """An engine with such state, restored from a store."""
    return Engine.restore(store, limits, state=small(), **others)
