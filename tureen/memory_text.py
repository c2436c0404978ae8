"""The worker's memory in a line, as ``GET /status`` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tureen.errors import MIB

TOLD = ("level", "used_bytes", "budget_bytes", "uncounted_bytes", "spilled_bytes")
"""Facts that a machine is told of it."""
PARTS_SHOWN = 3
"""The largest of what is counted."""


def memory_line(memory: Mapping[str, Any]) -> str:
    """What is used of what budget, what takes most of it, and what of the rows is on disk.

    >>> memory_line({"used_bytes": 400 << 20, "budget_bytes": 512 << 20, "uncounted_bytes": 30 << 20,
    ...     "counted_bytes": {"process": 250 << 20, "rows": 120 << 20}, "spilled_bytes": 90 << 20})
    '400 MiB of 512 MiB: process 250, rows 120, uncounted 30; 90 MiB of rows on disk'
    """
    parts = sorted(memory["counted_bytes"].items(), key=lambda one: -one[1])[:PARTS_SHOWN]
    parts.append(("uncounted", memory["uncounted_bytes"]))
    told = ", ".join(f"{name.replace('_', ' ')} {size / MIB:,.0f}" for name, size in parts if size >= MIB)
    spilled = memory.get("spilled_bytes", 0)
    on_disk = f"; {spilled / MIB:,.0f} MiB of rows on disk" if spilled else ""
    whole = f"{memory['used_bytes'] / MIB:,.0f} MiB of {memory['budget_bytes'] / MIB:,.0f} MiB"
    return f"{whole}: {told}{on_disk}"


def memory_facts(memory: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON has of it."""
    return {name: memory[name] for name in TOLD if name in memory}
