"""Costs that were measured on this machine lately, kept in a file so that a start need not measure again.

They are those of a machine, a version of Tureen, of Python and of the compiler; any other measures anew, and
so does a start more than :data:`KEPT_S` later. A file that is missing, damaged or not to be written costs a
second of the start and nothing else.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from broker.base import logs
from engine.model.maintenance import Costs, UnitCosts

KEPT_S = 86_400

log = logs.get()


def known_or_measured(path: Path, measure: Callable[[], Costs]) -> Costs:
    """The costs of the file where they count, else measured ones, which are written there."""
    found = _read(path)
    if found is not None:
        return found
    costs = measure()
    _write(path, costs)
    return costs


def _measured_by() -> dict[str, Any]:
    """What costs depend on."""
    return {
        "tureen": metadata.version("tureen"),
        "numba": metadata.version("numba"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "host": platform.node(),
        "processors": os.cpu_count(),
    }


def _read(path: Path) -> Costs | None:
    try:
        told = json.loads(path.read_text())
        age_s = time.time() - told["measured_s"]
        if told["by"] != _measured_by() or not 0 <= age_s < KEPT_S:
            return None
        costs = told["costs"]
        units = UnitCosts(**{name: _cost(ns) for name, ns in costs.pop("units").items()})
        return Costs(**{name: _cost(ns) for name, ns in costs.items()}, units=units)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as damaged:
        log.warning("known_costs_unreadable", path=str(path), reason=repr(damaged))
        return None


def _cost(ns: object) -> float:
    """Raises ValueError where it is none."""
    if isinstance(ns, bool) or not isinstance(ns, int | float) or not 0 < ns < float("inf"):
        raise ValueError(f"{ns!r} is no cost")
    return float(ns)


def _write(path: Path, costs: Costs) -> None:
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    told = {"by": _measured_by(), "measured_s": time.time(), "costs": asdict(costs)}
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(told, file)
        beside.replace(path)
    except OSError as full:
        log.warning("known_costs_unwritten", path=str(path), reason=repr(full))
