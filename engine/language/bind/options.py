"""The settings that WITH gives: which there are, and what each may be."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from engine.language.grammar import nodes
from engine.language.grammar.durations import duration_ms
from engine.language.places import Place, Text, did_you_mean, shown
from engine.language.render import quoted, render_span
from engine.model.tolerance import amount
from tureen.errors import OptionRefused, QueryError, SyntaxRefused, TypeMismatch

DURATION_MS_MAX = 2**53

_ELSEWHERE = {
    "kafka_topic": "topic",
    "replicas": "",
    "connector": "",
    "value_format": "format",
    "value_delimiter": "delimiter",
    "wrap_single_value": "",
    "timestamp_format": "",
    "rowtime": "timestamp",
    "event_time": "timestamp",
    "time_field": "timestamp",
    "watermark": "lateness",
    "retention": "retain",
    "ttl": "retain",
}
"""Options of other systems -> the one to write here, '' for none."""


_NOWHERE: Mapping[str, str] = {}


def _unknown(unknown: Mapping[str, Place], known: Sequence[str], elsewhere: Mapping[str, str]) -> QueryError:
    """The refusal of all names that are no options, at the place of the first."""
    hints = {
        name: elsewhere.get(name) or _instead(name, known) or did_you_mean(name, known) for name in unknown
    }
    names = [shown(name) for name in unknown]
    if len(names) == 1:
        said = f"there is no option named {names[0]!r}"
    else:
        said = "there are no options named " + ", ".join(map(repr, names))
    several = len(names) > 1
    advice = [f"{shown(name)}: {hint}" if several else hint for name, hint in hints.items() if hint]
    if len(advice) < len(names):
        advice.append("there are " + ", ".join(known))
    return next(iter(unknown.values())).refuse(SyntaxRefused, said, hint="; ".join(advice))


class WithOptions:
    """Settings by name. Raises SyntaxRefused for a name that is none of ``known``, or stands twice.

    What gives a value raises TypeMismatch where that is none of its setting.
    """

    def __init__(
        self,
        written: Sequence[exp.Expr],
        known: Sequence[str],
        text: Text,
        elsewhere: Mapping[str, str] = _NOWHERE,
    ) -> None:
        """elsewhere: options that have another place -> where that is."""
        self._text = text
        self._nodes: dict[str, exp.Expr] = {}
        unknown: dict[str, Place] = {}
        for option in written:
            name = str(option.args["name"])
            place = text.of_node(option)
            if name not in known:
                unknown.setdefault(name, place)
                continue
            if name in self._nodes:
                raise place.refuse(
                    SyntaxRefused, f"the option {name} is given twice", hint="leave one of them out"
                )
            self._nodes[name] = option.args["value"]
        if unknown:
            raise _unknown(unknown, known, elsewhere)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def written(self) -> dict[str, str]:
        """Each value as SQL has it, by name."""
        found = {}
        for name in self._nodes:
            value, kind = self._value(name)
            text = render_span(value) if kind == "duration" else str(value)
            found[name] = text.lower() if kind == "boolean" else text if kind == "number" else quoted(text)
        return found

    def place(self, name: str) -> Place:
        """Where the value stands."""
        return self._text.of_node(self._nodes[name])

    def wrong(self, name: str, hint: str) -> QueryError:
        """The refusal of a value."""
        return self.place(name).refuse(TypeMismatch, f"this is not a value of {name}", hint=hint)

    def string(self, name: str) -> str | None:
        """A string in quotes, None where it is something else."""
        value, kind = self._value(name)
        return str(value) if kind == "string" else None

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of a few words."""
        if name not in self._nodes:
            return default
        value, kind = self._value(name)
        folded = str(value).lower()
        if kind == "string" and folded in choices:
            return folded
        there_are = "there are " + ", ".join(f"'{one}'" for one in choices)
        near = difflib.get_close_matches(folded[:100], choices, n=1) if kind == "string" else []
        raise self.wrong(name, f"did you mean '{near[0]}'? {there_are}" if near else there_are)

    def duration(self, name: str, default: int) -> int:
        """A length of time in ms."""
        if name not in self._nodes:
            return default
        value, kind = self._value(name)
        ms = duration_ms(value) if kind == "string" else value if kind == "duration" else None
        if ms is None:
            raise self.wrong(name, f"write {name} = '5 seconds'")
        if ms > DURATION_MS_MAX:
            raise self.wrong(name, "write a shorter time")
        return int(ms)

    def flag(self, name: str, default: bool) -> bool:
        """TRUE or FALSE."""
        if name not in self._nodes:
            return default
        value, kind = self._value(name)
        if kind == "string" and value.lower() in ("true", "false"):
            return bool(value.lower() == "true")
        if kind != "boolean":
            raise self.wrong(name, f"write {name} = true or {name} = false")
        return bool(value)

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number from 1."""
        if name not in self._nodes:
            return default
        value, kind = self._value(name)
        if kind not in ("number", "string") or not str(value).isdecimal() or len(value) > 9:
            raise self.wrong(name, f"write {name} = 4")
        count = int(value)
        if not 1 <= count <= most:
            raise self.wrong(name, f"write a number from 1 to {most:,}")
        return count

    def share(self, name: str, default: float) -> float:
        """A number from 0 to 1."""
        if name not in self._nodes:
            return default
        value, kind = self._value(name)
        try:
            share = float(value) if kind in ("number", "string") and len(value) <= 40 else None
        except ValueError:
            share = None
        if share is None or not 0.0 <= share <= 1.0:  # NaN is neither
            raise self.wrong(name, "write a number from 0 to 1, as 0.7")
        return share

    def amount(self, name: str) -> float:
        """A value of :data:`engine.model.tolerance.AMOUNTS`."""
        value, kind = self._value(name)
        try:
            return amount(name, value if kind in ("number", "string") else None)
        except OptionRefused as refused:
            raise self.wrong(name, f"write {refused.hint}") from None

    def _value(self, name: str) -> tuple[Any, str]:
        """The value as written, and what it is: string, number, boolean, duration."""
        node = self._nodes[name]
        if isinstance(node, nodes.Duration):
            return node.this, "duration"
        if isinstance(node, exp.Boolean):
            return node.this, "boolean"
        return node.this, "string" if node.args.get("is_string") else "number"


def _instead(name: str, known: Sequence[str]) -> str | None:
    """What to write for another system's option."""
    if name in ("constraint", "constraints"):
        return "write CONSTRAINT clauses behind the columns: (id BIGINT, CONSTRAINT UNIQUE (id))"
    instead = _ELSEWHERE.get(name)
    if instead == "":
        return "leave it out: records are JSON objects of a Kafka topic; there are " + ", ".join(known)
    return f"write {instead} = ..." if instead in known else None
