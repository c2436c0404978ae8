"""Allocations that look at no loss: what the solver is compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.overload.precision.grouping import VariablePart, parts_of
from engine.overload.precision.joint_parts import JointParts
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import (
    Allocation,
    Problem,
)
from engine.overload.precision.solver_settings import DEFAULT


def equal(problem: Problem) -> Allocation:
    """Every entity gets as many bytes (and as much CPU time) as every other, up to what it can use."""
    return _plainly(problem, _filled_evenly)


def proportional(problem: Problem) -> Allocation:
    """Every entity gets the same share of what lies between its least and greatest."""
    return _plainly(problem, lambda part, level: part.low + level * (part.high - part.low))


def _filled_evenly(part: VariablePart, level: float) -> FloatArray:
    """Gives all entities of a part as much, float64[variables]. level: as a share, in (0, 1], of the most
    that one entity can use.
    """
    costs = np.maximum(part.bytes + part.cpu_ns, 1e-300)
    copies = np.array([len(names) for names in part.entities], np.float64)
    return np.clip(level * copies / costs, part.low, part.high)


def _plainly(problem: Problem, at: Callable[[VariablePart, float], FloatArray]) -> Allocation:
    """The highest level at which all parts fit."""
    parts = parts_of(problem, 0)
    joint = JointParts(problem, parts, None, DEFAULT)
    low, high = 0.0, 1.0
    if at is _filled_evenly:
        high = max((float(np.max(part.bytes + part.cpu_ns, initial=0.0)) for part in parts), default=0.0)
    if joint.fits([at(part, high) for part in parts]):
        low = high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if joint.fits([at(part, middle) for part in parts]) else (low, middle)
    return joint.allocation([at(part, low) for part in parts])
