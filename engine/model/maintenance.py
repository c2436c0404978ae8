"""How a query's answer is maintained, and what decides it when the user does not.

    none    nothing is kept; the predicate is evaluated over the window when the answer is asked for
    lazy    matches are kept as rows arrive; the window is imposed and the rest done when asked (PSoup)
    eager   the answer itself is kept current

All three give the same answers, so a choice is no step and may change at any time. ``auto`` leaves it to the
cost model: for each mode what it costs a second to keep up, plus what an answer costs times the answers
asked for a second. Its terms are times measured on this machine (:class:`Costs`), none is assumed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tureen.errors import OptionRefused

Maintenance = Literal["none", "lazy", "eager"]
MODES: tuple[Maintenance, ...] = ("none", "lazy", "eager")
UNAFFORDABLE = (
    "applying its condition to the rows that are retained would hold up other queries, so the condition is "
    "evaluated when the answer is asked for; IN lists and joins with a table are faster than long ORs"
)
Wanted = Literal["auto", "none", "lazy", "eager"]


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a registration asks for. ``paused``: the query stands and is not supported."""

    maintenance: Wanted = "auto"
    paused: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> QueryOptions:
        """Read a registration's options; those of other parts are passed over. Raises OptionRefused."""
        if not options:
            return _DEFAULT
        wanted = options.get("maintenance", "auto").lower()
        if wanted not in get_args(Wanted):
            hint = "one of " + ", ".join(get_args(Wanted))
            raise OptionRefused(f"maintenance cannot be {wanted!r}", hint=hint)
        paused = options.get("paused", "false").lower()
        if paused not in ("true", "false"):
            raise OptionRefused(f"paused cannot be {paused!r}", hint="true or false")
        return cls(sys.intern(wanted), paused == "true")  # type: ignore[arg-type]


_DEFAULT = QueryOptions()


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds, measured at start by whoever has a clock.

    match_ns: one more predicate, a row, in the Query SteM. evaluate_ns: one predicate, a row, on its own.
    read_ns: reading kept matches, a row of the window. gather_ns: a row of the answer, put together.
    answer_ns: asking at all. keep_ns: bringing one kept answer up to date, once a step.
    """

    match_ns: float
    evaluate_ns: float
    read_ns: float
    gather_ns: float
    answer_ns: float
    keep_ns: float


@dataclass(frozen=True, slots=True)
class Load:
    """What a query meets. Rates are a second; ``window_rows``: rows its window holds; ``selectivity``: the
    share that matches.
    """

    rows_per_s: float
    steps_per_s: float
    answers_per_s: float
    window_rows: float
    selectivity: float


@dataclass(frozen=True, slots=True)
class MaintenanceChoice:
    """A mode and why: for each mode the estimated share of a core it takes, or that the user asked for it.

    unaffordable: matches are not kept, since applying the condition to the rows that are there takes too
    long.
    """

    maintenance: Maintenance
    shares: Mapping[Maintenance, float]
    asked_for: bool = False
    unaffordable: bool = False

    @property
    def reason(self) -> str:
        """One line for EXPLAIN."""
        shares = ", ".join(f"{mode} {share:.3g}" for mode, share in self.shares.items())
        weighed = f"share of a core: {shares}" if shares else "no costs were measured yet"
        if self.unaffordable:
            return f"{UNAFFORDABLE}; {weighed}"
        if self.asked_for:
            return f"set by an option; {weighed}"
        if shares and self.shares[self.maintenance] > min(self.shares.values()):
            weighed += "; the mode changes when another one costs less than half"
        return weighed


def choose(costs: Costs, load: Load, among: Collection[Maintenance] = MODES) -> MaintenanceChoice:
    """The cheapest of these modes under this load; lazy where they are equal."""
    matches = load.window_rows * load.selectivity
    answer_ns = costs.answer_ns + matches * costs.gather_ns
    entering = load.rows_per_s * load.selectivity
    upkeep_ns = load.rows_per_s * costs.match_ns
    nanoseconds: dict[Maintenance, float] = {
        "lazy": upkeep_ns + load.answers_per_s * (answer_ns + load.window_rows * costs.read_ns),
        "none": load.answers_per_s * (answer_ns + load.window_rows * costs.evaluate_ns),
        "eager": upkeep_ns
        + load.steps_per_s * costs.keep_ns
        + entering * costs.gather_ns
        + load.answers_per_s * costs.answer_ns,
    }
    shares = {mode: cost / 1e9 for mode, cost in nanoseconds.items()}
    return MaintenanceChoice(
        min((mode for mode in shares if mode in among), key=lambda mode: shares[mode]), shares
    )
