"""What every module of the engine tells of itself, and what of it may be set while it runs.

The API, the metrics and a page that shows a running plan are drawn from these lists; none knows a module.
What changes an answer is a journalled step, whoever sets it; every other attribute is set between two steps.

Adding an attribute is one line in its module: type and unit follow from value and name where they are not
given.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tureen.errors import AttributeRefused, EditConflict

AttributeValue = int | float | str | bool | None
AttributeType = Literal["integer", "number", "text", "boolean"]

_UNITS = {
    "_ms": "ms",
    "_ns": "ns",
    "_s": "s",
    "_bytes": "bytes",
    "_rows": "rows",
    "_share": "share",
}
"""Units stand last in names."""


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from low to high, both included unless low_excluded; None: no end."""

    low: float | None = None
    high: float | None = None
    low_excluded: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number lies within; NaN lies nowhere."""
        if math.isnan(value) or (self.high is not None and value > self.high):
            return False
        return self.low is None or (value > self.low if self.low_excluded else value >= self.low)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"low": self.low, "high": self.high, "low_excluded": self.low_excluded}


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute as it stands.

    choices: what it may be set to; accepts: the same in words, bounds: as numbers, where these are too many.
    None of them: it can only be read. unit, kind: of the value, where name and value do not show them.
    changes_answers: setting it changes answers, or what is told of them, so it takes a journalled step.
    clearable: it may be set to NULL, which means what ``about`` says.
    """

    name: str
    value: AttributeValue
    about: str
    choices: tuple[str, ...] = ()
    accepts: str = ""
    bounds: NumberRange | None = None
    unit: str | None = None
    kind: AttributeType | None = None
    changes_answers: bool = False
    clearable: bool = False

    @property
    def settable(self) -> bool:
        """Whether it can be set at all."""
        return bool(self.choices or self.accepts or self.bounds is not None)

    @property
    def type(self) -> AttributeType:
        """The type of the attribute: ``kind`` where that is said, else the type of its value; a number where
        the value is not known.
        """
        if self.kind is not None:
            return self.kind
        match self.value:
            case bool():
                return "boolean"
            case int():
                return "integer"
            case str():
                return "text"
        return "number"

    @property
    def measured_in(self) -> str | None:
        """The unit; None where it has none."""
        if self.unit is not None:
            return self.unit or None
        if self.type not in ("integer", "number"):
            return None
        name = f"_{self.name}"
        return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), None)

    def read(self, value: AttributeValue) -> AttributeValue:
        """A value of its type that a text says, as a command line has it; others as they are.

        >>> Attribute("rows", 1, "").read("12"), Attribute("policy", "a", "").read("12")
        (12, '12')
        """
        if not isinstance(value, str) or self.type == "text":
            return value
        if self.type == "boolean":
            return {"true": True, "false": False}.get(value.lower(), value)
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if self.type == "integer" and number.is_integer() else number

    def refusal(self, value: AttributeValue) -> str | None:
        """Why it cannot be set to a value, as a hint: what it accepts; None where it can."""
        if not self.settable:
            return "it can only be read"
        if value is None and self.clearable:
            return None
        if self.choices:
            return None if value in self.choices else f"one of {', '.join(self.choices)}"
        right = {
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "number": isinstance(value, int | float) and not isinstance(value, bool),
            "text": isinstance(value, str),
            "boolean": isinstance(value, bool),
        }[self.type]
        if right and self.bounds is not None and isinstance(value, int | float):
            right = self.bounds.holds(value)
        if right:
            return None
        told = self.accepts or f"{self.type} {self._within()}".rstrip()
        return f"{told}, or NULL" if self.clearable else told

    def _within(self) -> str:
        bounds = self.bounds
        if bounds is None:
            return ""
        low = (
            "" if bounds.low is None else f"{'above' if bounds.low_excluded else 'from'} {bounds.low:,.15g} "
        )
        return low + ("" if bounds.high is None else f"to {bounds.high:,.15g}")

    def as_dict(self) -> dict[str, Any]:
        """With all that is known of it, as JSON has it; a number that JSON does not have is a text."""
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        return {
            "name": self.name,
            "value": value,
            "type": self.type,
            "unit": self.measured_in,
            "about": self.about,
            "settable": self.settable,
            "choices": list(self.choices),
            "accepts": self.accepts or (self._within() if self.bounds is not None else ""),
            "range": None if self.bounds is None else self.bounds.as_dict(),
            "changes_answers": self.changes_answers,
            "clearable": self.clearable,
        }


def version_of(attributes: Iterable[Attribute]) -> int:
    """A checksum of the attributes that can be set: another one as soon as any of them has another value."""
    settable = [(one.name, one.value) for one in attributes if one.settable]
    return zlib.crc32(repr(sorted(settable)).encode())


def edits(
    module: str,
    attributes: Iterable[Attribute],
    values: Mapping[str, AttributeValue],
    version: int | None,
) -> dict[str, AttributeValue]:
    """The values that some attributes of a module are to be set to, read as their types have them.

    version: that the attributes must still have (:func:`version_of`); None: whatever they are.

    Raises AttributeRefused, EditConflict.
    """
    attributes = tuple(attributes)
    now = version_of(attributes)
    if version is not None and version != now:
        raise EditConflict(module, now)
    known = {attribute.name: attribute for attribute in attributes}
    settable = [one.name for one in attributes if one.settable]
    read: dict[str, AttributeValue] = {}
    for name, value in values.items():
        attribute = known.get(name)
        if attribute is None:
            raise AttributeRefused(module, name, value, settable)
        read[name] = attribute.read(value)
        refusal = attribute.refusal(read[name])
        if refusal is not None:
            raise AttributeRefused(module, name, value, settable, refusal)
    return read
