"""What setting an attribute will do, said before it is done: one table for everything that can be set.

Each row of :data:`RULES` is of one attribute of one kind of module, and lists what follows from its change:
what becomes of answers, of those who follow them, of state and memory, and how long the value lasts. A rule
sees the value before and after, and the other attributes of the entity. Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from broker.allotment.consequence import STAY, Change, Consequence
from engine.model.attributes import AttributeValue

Rule = Callable[[Change], Iterator[Consequence]]

IN_WORDS = {"fp": "wrong rows", "fn": "missing rows", "error": "error of aggregates"}
"""What is expected of an answer."""


def consequences(change: Change) -> tuple[Consequence, ...]:
    """What follows from a change. Raises KeyError for an attribute that the table does not have."""
    rules = RULES[change.module, change.name.partition(".")[0]]
    if change.before == change.after:
        return (Consequence("nothing_changes", "It has this value already."),)
    return tuple(one for rule in rules for one in rule(change))


# --- rules ----------------------------------------------------------------------------------------


def always(code: str, text: str) -> Rule:
    """Make a rule that gives one consequence, whatever the values are."""
    found = Consequence(code, text)
    return lambda change: iter((found,))


answers_stay = always(STAY.code, STAY.text)
lasts_until_restart = always(
    "until_restart", "It lasts until the worker ends; a restart begins with the setting or the default again."
)
between_steps = always("between_steps", "It takes effect between two steps, and data waits less than 5 ms.")
journalled = always("journalled", "It is a step of the journal: a replay gives the same answers.")
registered = always("registered", "It is kept with the registration, and outlives a restart.")
feeds_go_on = always("feeds_go_on", "Whoever follows the query goes on with the next change.")
state_again = always(
    "state_made_anew",
    "The operators of followed queries make their state anew, on all shards; data waits for that meanwhile.",
)
own_state_again = always(
    "state_made_anew", "If the query is followed, its operators make their state anew; others keep theirs."
)
feeds_get_difference = always(
    "feeds_get_difference", "Whoever follows the query gets the difference of both answers as one change."
)


def order_alone(what: str) -> Rule:
    """what: what is done in another order."""

    def rule(change: Change) -> Iterator[Consequence]:
        yield Consequence("order_alone", f"{what}: from {_of(change.before)} to {_of(change.after)}.")

    return rule


def grows(more: str, less: str) -> Rule:
    """What a larger number does, and a smaller one."""

    def rule(change: Change) -> Iterator[Consequence]:
        if isinstance(change.before, int | float) and isinstance(change.after, int | float):
            yield Consequence("cost_moves", more if change.after > change.before else less)

    return rule


def _monitor(change: Change) -> Iterator[Consequence]:
    yield Consequence("observed_anew", "What was observed so far is forgotten, and counted anew.")
    match change.after:
        case "off":
            yield Consequence("cost_moves", "Rows are not looked at any more: k_observed is not known.")
        case "sampled":
            yield Consequence("cost_moves", "Stretches of rows are looked at, one value in sixteen.")
        case _:
            yield Consequence("cost_moves", "Every row is looked at, which takes computing time.")


def _composites(change: Change) -> Iterator[Consequence]:
    held = _number(change.facts.get("composites_bytes"))
    if change.after == "off":
        yield Consequence(
            "memory_freed",
            "The combinations that are kept are let go of; answers are probed for when they are asked for, "
            "which takes longer.",
            -held,
        )
    else:
        yield Consequence(
            "memory_taken",
            "Combinations are found anew at the next step and kept from then on; answers are read from them.",
        )


def _composites_max(change: Change) -> Iterator[Consequence]:
    kept = _number(change.facts.get("composites_kept"))
    held = _number(change.facts.get("composites_bytes"))
    after = _number(change.after)
    if after < kept:
        yield Consequence(
            "memory_freed",
            f"{kept:,} combinations are kept, more than {after:,}: all are let go of at the next step, "
            "and answers are probed for when they are asked for.",
            -held,
        )
    elif change.facts.get("composites_refused") is True:
        yield Consequence(
            "memory_taken",
            f"Combinations are found anew at the next step, and kept if they are no more than {after:,}.",
        )
    else:
        yield Consequence("limit_alone", f"{kept:,} combinations are kept: nothing is let go of now.", 0)


def _work(change: Change) -> Iterator[Consequence]:
    before, after = change.before, change.after
    if after is None:
        yield Consequence(
            "answers_change",
            "Queries with a preference get what time is free: their answers come nearer to the exact ones.",
        )
        return
    if after == 0:
        yield Consequence(
            "answers_may_be_approximate",
            "Queries with a preference find nothing more: rows that come now are missing in their answers, "
            "which say so by a tag `preference`.",
        )
        return
    less = before is None or _float(after) < _float(before)
    yield Consequence(
        "answers_may_be_approximate" if less else "answers_change",
        f"Queries with a preference get at most {_float(after):,.0f} units of work a second. Where more rows "
        "are due, the answers have a tag `preference` with what is left to be found.",
    )


def _summary(change: Change) -> Iterator[Consequence]:
    yield Consequence(
        "answers_change",
        "Zones that end from now on are of another length, so queries with a preference that use this "
        "summary visit rows in another order, and find others first while work is left.",
    )


def _paused(change: Change) -> Iterator[Consequence]:
    if change.after is True:
        yield Consequence(
            "answer_ends", "The query stands and has no answer (query_paused) until it is resumed."
        )
        yield Consequence("feeds_silent", "Feeds stay open and silent; nothing goes to its result topic.")
        yield Consequence("rows_kept", "Rows are kept for its windows as if it ran, unless it is released.")
        held = change.facts.get("memory_bytes")
        if isinstance(held, int | float):
            yield Consequence(
                "memory_freed", "What is kept for its answer alone is let go of, at most all that it pays."
            )
    else:
        yield Consequence("answer_returns", "The answer is made from the rows that are kept, and served.")
        yield from feeds_get_difference(change)


def _release(change: Change) -> Iterator[Consequence]:
    if change.after is True:
        yield Consequence(
            "rows_released",
            "While it is paused no rows are kept for its windows: its answer afterwards may begin with "
            "complete_from_ms. A query that is not paused keeps them.",
        )
    else:
        yield Consequence("rows_kept", "Rows that come are kept for its windows; those that went are gone.")


def _tolerance(what: str) -> Rule:
    def rule(change: Change) -> Iterator[Consequence]:
        if not change.after:
            yield Consequence(
                "answers_exact",
                f"It allows no {what}: what it is given less for that is given again. Rows that are gone do "
                "not come back, and the answer says from when on it is complete.",
            )
        else:
            yield Consequence(
                "answers_may_be_approximate",
                f"Up to {100 * _float(change.after):.4g} % of {what} are allowed: where memory or time is "
                "short, the query may be given less within this bound, and its answer says so by its tags.",
            )

    return rule


def _of_preference(change: Change) -> Iterator[Consequence]:
    yield Consequence(
        "answers_change",
        "What is found first changes: an answer that is not whole yet gets other rows; a whole one stays.",
    )


def _maintenance(change: Change) -> Iterator[Consequence]:
    match change.after:
        case "none":
            yield Consequence(
                "memory_freed", "Nothing is kept of it; its condition is evaluated when the answer is asked."
            )
        case "lazy":
            yield Consequence("memory_taken", "Which rows match is kept; the rest is computed when asked.")
        case "eager":
            yield Consequence(
                "memory_taken",
                "The answer itself is kept and brought up to date at each step; reads are cheap.",
            )
        case _:
            yield Consequence("broker_chooses", "The cheapest way is chosen, and again as rates change.")


def _less(what: str) -> Rule:
    """Make a rule for what a query is given. what: the part of the answer's precision that it decides."""

    def rule(change: Change) -> Iterator[Consequence]:
        asked = change.facts.get(f"{change.name}.asked")
        if change.after is None or change.after == asked:
            yield Consequence("answers_exact", f"It is given {what} that its text asks for.")
        else:
            told = ", ".join(
                f"{IN_WORDS[name]} {100 * value:.3g} %" for name, value in change.expected.as_dict().items()
            )
            yield Consequence(
                "answers_approximate",
                f"It is given less of {what} than its text asks for, and its answer has a tag for that"
                + (f"; expected: {told}." if told else "; nothing tells how near it is."),
                expected=change.expected,
            )
        yield from feeds_get_difference(change)

    return rule


def _window_memory(change: Change) -> Iterator[Consequence]:
    if change.nbytes is None:
        return
    if change.nbytes == 0:
        yield Consequence(
            "limit_alone", "Another window or RETAIN keeps these rows anyway: no memory is freed or taken.", 0
        )
    elif change.nbytes < 0:
        yield Consequence(
            "memory_freed", "Rows that no other window reaches are let go of, for good.", change.nbytes
        )
    else:
        yield Consequence(
            "memory_taken",
            "Rows are kept longer from now on. Those that are gone do not come back: until the window is "
            "full, the answer says from when on it is complete.",
            change.nbytes,
        )


_SHARED = (between_steps, lasts_until_restart)
_OF_STATE = (answers_stay, state_again, lasts_until_restart)
_OPTION = (journalled, registered)
_PLAIN_OPTION = (answers_stay, feeds_go_on, registered)

RULES: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    ("state-buffers", "state_partitions"): (
        *_OF_STATE,
        grows("Rows leave in smaller parts: less time for each, more memory.", "Less memory, more time."),
    ),
    ("state-buffers", "expiry_lazy_fraction"): (
        *_OF_STATE,
        grows(
            "Rows that nobody sees leave stay longer behind their exit: more memory, less time.",
            "Rows that nobody sees leave go sooner: less memory, more time.",
        ),
    ),
    ("scheduler", "policy"): (
        answers_stay,
        order_alone(
            "Which batch is run next changes, and with it how long rows wait and how much queues hold"
        ),
        *_SHARED,
    ),
    ("query-stem", "policy"): (
        answers_stay,
        order_alone("The order in which predicates are tried changes, and what that costs"),
        *_SHARED,
    ),
    ("query-stem", "grouped_filters"): (
        answers_stay,
        order_alone("How predicates are tried changes, in one pass or one after another"),
        *_SHARED,
    ),
    ("monitor", "mode"): (answers_stay, _monitor, *_SHARED),
    ("join", "policy"): (
        answers_stay,
        order_alone("The order in which inputs of the join are probed changes, and what that costs"),
        *_SHARED,
    ),
    ("join", "placement"): (
        answers_stay,
        order_alone("Whether users' functions are called before rows are joined or after changes"),
        *_SHARED,
    ),
    ("join", "composites"): (answers_stay, _composites, *_SHARED),
    ("join", "composites_max"): (answers_stay, _composites_max, *_SHARED),
    ("summary", "theta"): (
        _summary,
        grows("Zones end sooner: more of them, and more memory.", "Zones end later: fewer, and less memory."),
        *_OPTION,
    ),
    ("summary", "zone_rows_min"): (
        _summary,
        grows("Zones have more rows: fewer of them, less memory.", "Zones have fewer rows: more memory."),
        *_OPTION,
    ),
    ("shard", "preference_work_per_s_max"): (_work, journalled, lasts_until_restart),
    ("query", "paused"): (_paused, *_OPTION),
    ("query", "release"): (_release, *_OPTION),
    ("query", "weight"): (
        grows(
            "It counts for more where memory, time or work is short: others are given less before it is.",
            "It counts for less where memory, time or work is short: it is given less before others are.",
        ),
        feeds_go_on,
        registered,
    ),
    ("query", "max_fp"): (_tolerance("wrong rows"), *_OPTION),
    ("query", "max_fn"): (_tolerance("missing rows"), *_OPTION),
    ("query", "max_error"): (_tolerance("relative error of aggregates"), *_OPTION),
    ("query", "latency_ms_max"): (
        answers_stay,
        always(
            "order_alone",
            "Under the scheduling policy chain-deadline, batches of its sources are run before they are "
            "late; under the others nothing changes.",
        ),
        registered,
    ),
    ("query", "maintenance"): (*_PLAIN_OPTION, _maintenance),
    ("query", "strategy"): (*_PLAIN_OPTION, own_state_again),
    ("query", "structure"): (*_PLAIN_OPTION, own_state_again),
    ("query", "partitions"): (*_PLAIN_OPTION, own_state_again),
    ("query", "fade"): (_of_preference, *_OPTION),
    ("query", "priority"): (_of_preference, *_OPTION),
    ("query", "window_ms"): (_less("the window"), _window_memory, journalled),
    ("query", "percent"): (_less("the rows"), journalled),
}
"""(module, attribute) -> rules, in the order in which they are told."""


def _of(value: AttributeValue) -> str:
    return "none" if value is None else str(value)


def _number(value: AttributeValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _float(value: AttributeValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
