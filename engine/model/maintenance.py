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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from engine.model.tolerance import Tolerance, amount
from tureen.errors import OptionRefused

Maintenance = Literal["none", "lazy", "eager"]
MODES: tuple[Maintenance, ...] = ("none", "lazy", "eager")
UNAFFORDABLE = (
    "applying its condition to the rows that are retained would hold up other queries, so the condition is "
    "evaluated when the answer is asked for; IN lists and joins with a table are faster than long ORs"
)
Wanted = Literal["auto", "none", "lazy", "eager"]
Strategy = Literal["nt", "direct", "upa"]
PriorityForm = Literal["count", "density"]
Structure = Literal["partitioned", "negative", "indexed"]
PARTITIONS_MAX = 65_536
LATENCY_MS_MAX = 3_600_000


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a registration asks for. paused: the query stands and is not served. release: no rows are kept
    for its windows while it is paused. strategy, structure, partitions: how the operators that changes come
    from keep rows until they leave (:mod:`engine.dataflow.policy`); None: the cost model chooses, of
    partitions the setting holds.
    latency_ms_max: how long a row may wait before it is in the answer, where the scheduling policy goes by
    that. max_fp, max_fn, max_error: of its tolerance, before what its text says. fade, priority: of its
    preference, in the same way: the factor in (0, 1] by which older parts of a stream count less, and the
    form of the priority (:mod:`engine.language.preference`). None: nothing is said.
    """

    maintenance: Wanted = "auto"
    paused: bool = False
    release: bool = False
    strategy: Strategy | None = None
    structure: Structure | None = None
    partitions: int | None = None
    latency_ms_max: int | None = None
    max_fp: float | None = None
    max_fn: float | None = None
    max_error: float | None = None
    fade: float | None = None
    priority: PriorityForm | None = None

    @property
    def tolerance(self) -> Tolerance:
        """What the three say together."""
        return Tolerance(self.max_fp, self.max_fn, self.max_error)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> QueryOptions:
        """Read a registration's options; those of other parts are passed over. Raises OptionRefused."""
        if not options:
            return _DEFAULT
        release = _one_of(options, "release", _TRUTHS, "false")
        strategy = _one_of(options, "strategy", ("auto", *get_args(Strategy)), "auto")
        structure = _one_of(options, "structure", ("auto", *get_args(Structure)), "auto")
        priority = _one_of(options, "priority", get_args(PriorityForm), "count")
        return cls(
            _one_of(options, "maintenance", get_args(Wanted), "auto"),  # type: ignore[arg-type]
            _paused(options),
            release == "true",
            None if strategy == "auto" else strategy,  # type: ignore[arg-type]
            None if structure == "auto" else structure,  # type: ignore[arg-type]
            _partitions(options.get("partitions")),
            _latency_ms(options.get("latency_ms_max")),
            max_fp=_amount("max_fp", options),
            max_fn=_amount("max_fn", options),
            max_error=_amount("max_error", options),
            fade=_fade(options.get("fade")),
            priority=priority if "priority" in options else None,  # type: ignore[arg-type]
        )


def _one_of(options: Mapping[str, str], name: str, choices: Sequence[str], default: str) -> str:
    wanted = options.get(name, default).lower()
    if wanted not in choices:
        hint = "true or false" if choices == _TRUTHS else "one of " + ", ".join(choices)
        raise OptionRefused(f"{name} cannot be {wanted!r}", hint=hint)
    return sys.intern(wanted)


_TRUTHS = ("true", "false")


def _paused(options: Mapping[str, str]) -> bool:
    """``active`` is the opposite of ``paused``. Raises OptionRefused where both are given and contradict."""
    paused = _one_of(options, "paused", _TRUTHS, "false") == "true"
    if "active" not in options:
        return paused
    active = _one_of(options, "active", _TRUTHS, "true") == "true"
    if "paused" in options and paused == active:
        raise OptionRefused("active and paused contradict each other", hint="give one of them")
    return not active


def _partitions(text: str | None) -> int | None:
    if text is None or text.lower() == "auto":
        return None
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(PARTITIONS_MAX))
    if not digits or not 1 <= int(text) <= PARTITIONS_MAX:
        raise OptionRefused(
            f"partitions cannot be {text!r}", hint=f"auto, or a number from 1 to {PARTITIONS_MAX:,}"
        )
    return int(text)


def _latency_ms(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(LATENCY_MS_MAX))
    if not digits or not 1 <= int(text) <= LATENCY_MS_MAX:
        raise OptionRefused(
            f"latency_ms_max cannot be {text!r}", hint=f"a number of ms from 1 to {LATENCY_MS_MAX:,}"
        )
    return int(text)


def _amount(name: str, options: Mapping[str, str]) -> float | None:
    return amount(name, options[name]) if name in options else None


def _fade(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        fade = float(text)
    except ValueError:
        fade = 0.0
    if not 0.0 < fade <= 1.0:  # NaN is neither
        raise OptionRefused(f"fade cannot be {text[:40]!r}", hint="a number above 0 and up to 1, as 0.8")
    return fade


_DEFAULT = QueryOptions()


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds, measured at start by whoever has a clock.

    match_ns: one more predicate, a row, in the Query SteM. evaluate_ns: one predicate, a row, on its own.
    read_ns: reading kept matches, a row of the window. gather_ns: a row of the answer, put together.
    answer_ns: asking at all. keep_ns: bringing one kept answer up to date, once a step. units: of
    the operators that changes come from.
    """

    match_ns: float
    evaluate_ns: float
    read_ns: float
    gather_ns: float
    answer_ns: float
    keep_ns: float
    units: UnitCosts | None = None


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Nanoseconds of what operators of the graph do to a row or an entry of their state, measured at start by
    whoever has a clock. As they stand here they only weigh things against each other.

    touch_ns: a row that passes an operator. visit_ns: an entry of an array that is scanned. insert_ns,
    delete_ns: an entry that is put in or taken out. sort_ns: an entry and a binary digit of the number of
    those it is sorted with. probe_ns: a look for a value. match_ns: an equal row found. fold_ns: a row that
    changes a group. emit_ns: a change handed over.
    """

    touch_ns: float = 10.0
    visit_ns: float = 1.0
    insert_ns: float = 10.0
    delete_ns: float = 5.0
    sort_ns: float = 3.0
    probe_ns: float = 40.0
    match_ns: float = 20.0
    fold_ns: float = 60.0
    emit_ns: float = 30.0


@dataclass(frozen=True, slots=True)
class PutOff:
    """An answer that is to be kept is worked out when it is asked for, so that steps do not wait for it.

    step_ns: what bringing it up to date takes a step, nanoseconds; None: that is still to be found out.
    """

    step_ns: float | None = None

    @property
    def notice(self) -> str:
        """One line for its user.

        >>> PutOff(0.3e9).notice
        'eager, but answered lazily: its answer takes 300 ms a step'
        """
        if self.step_ns is None:
            return "eager, but answered lazily until it is known what its answer takes a step"
        return f"eager, but answered lazily: its answer takes {_of_a_second(self.step_ns / 1e9)} a step"


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
    long. put_off: that the answer is not kept, since that takes too long.
    """

    maintenance: Maintenance
    shares: Mapping[Maintenance, float]
    asked_for: bool = False
    unaffordable: bool = False
    put_off: PutOff | None = None

    @property
    def reason(self) -> str:
        """One line for EXPLAIN."""
        shares = ", ".join(f"{mode} {_of_a_second(share)}" for mode, share in self.shares.items())
        weighed = f"computing time a second: {shares}" if shares else "no costs were measured yet"
        if self.unaffordable:
            return f"{UNAFFORDABLE}; {weighed}"
        if self.put_off is not None:
            return f"{self.put_off.notice}; {weighed}"
        if self.asked_for:
            return f"set by an option; {weighed}"
        if shares and self.shares[self.maintenance] > min(self.shares.values()):
            weighed += "; the mode changes when another one costs less than half"
        return weighed


def _of_a_second(share: float) -> str:
    """A share of a core as what it takes of each second.

    >>> _of_a_second(2.97e-07), _of_a_second(0.00066), _of_a_second(0.25)
    ('297 ns', '660 µs', '250 ms')
    """
    for unit, size in (("ns", 1e-9), ("µs", 1e-6)):
        if share < 999.5 * size:
            return f"{share / size:.3g} {unit}"
    return f"{share * 1e3:,.3g} ms" if share < 1 else f"{share:,.3g} s"


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
