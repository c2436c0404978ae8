"""Paths into JSON values: ``$.meta.fw``, ``$.tags[0]``, ``$."first name"``, ``$['a.b']``.

A path is a tuple of steps: a str is a member of an object by exactly this name, an int >= 0 an element of an
array, counted from 0. Where a value has no such member or element, or is neither an object nor an array, the
path leads nowhere, which is NULL. The empty path is the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

Path = tuple[str | int, ...]

STEPS_MAX = 32
INDEX_MAX = 1_000_000

_STEP = re.compile(
    r"""\.\s*(?P<plain>[^\W\d][\w$-]*)
    | \.\s*"(?P<quoted>(?:[^"\\]|\\.)*)"
    | \[\s*(?P<index>[0-9]{1,7})\s*\]
    | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d][\w$-]*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class NoPath(ValueError):
    """A text that is no path. place: of the character, from 0, that was not understood."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place


def parse_path(text: str) -> Path:
    r"""The steps of a path.

    Raises NoPath.

    >>> parse_path('$.meta.fw'), parse_path("$['a.b'][2].\"c d\"")
    (('meta', 'fw'), ('a.b', 2, 'c d'))
    """
    if not text.startswith("$"):
        raise NoPath("a path begins with $", 0)
    steps: list[str | int] = []
    place = 1
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            raise NoPath(f"{text[place : place + 20]!r} is no step of a path", place)
        if len(steps) == STEPS_MAX:
            raise NoPath(f"a path has at most {STEPS_MAX} steps", place)
        if step["index"] is not None:
            index = int(step["index"])
            if index > INDEX_MAX:
                raise NoPath(f"an element's place is at most {INDEX_MAX:,}", place)
            steps.append(index)
        else:
            given = next(
                step[kind] for kind in ("plain", "quoted", "single", "double") if step[kind] is not None
            )
            steps.append(given if step["plain"] is not None else _ESCAPED.sub(r"\1", given))
        place = step.end()
    return tuple(steps)


def value_at(path: Path, value: Any, nothing: Any = None) -> Any:
    """What stands at a path of a value of JSON: null is None. nothing: where the path leads nowhere. An
    element may be counted from the end, from -1 on, though no text of a path does.

    >>> value_at(("tags", 0), {"tags": ["a"]}), value_at(("tags", 1), {"tags": ["a"]})
    ('a', None)
    """
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            is_there = step in value
        else:
            is_there = isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)
        if not is_there:
            return nothing
        value = value[step]
    return value


_NAME = re.compile(r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^",{}\\]*))\s*(?:,|$)')


def parse_names(text: str) -> tuple[str, ...]:
    r"""The steps of a path as PostgreSQL writes it, as text of an array. Raises NoPath.

    >>> parse_names('{a,0,"b c"}'), parse_names("{}")
    (('a', '0', 'b c'), ())
    """
    if not (text.startswith("{") and text.endswith("}")):
        raise NoPath("such a path stands in braces", 0)
    inner = text[1:-1]
    if not inner.strip():
        return ()
    steps: list[str] = []
    place, is_open = 0, True
    while is_open:
        step = _NAME.match(inner, place)
        if step is None or (step["quoted"] is None and not step["plain"].strip()):
            raise NoPath(f"{inner[place : place + 20]!r} is no step of a path", place + 1)
        if len(steps) == STEPS_MAX:
            raise NoPath(f"a path has at most {STEPS_MAX} steps", place + 1)
        given = step["quoted"]
        steps.append(step["plain"].strip() if given is None else _ESCAPED.sub(r"\1", given))
        place, is_open = step.end(), step[0].endswith(",")
    return tuple(steps)


def value_named(names: tuple[str, ...], value: Any) -> Any:
    """What stands at the steps of :func:`parse_names`: of an array, a whole number is an element's place,
    below 0 from the end. None: nothing does, or null.

    >>> value_named(("a", "-1"), {"a": [1, 2]}), value_named(("0",), {"0": 3})
    (2, 3)
    """
    for name in names:
        step: str | int = name
        if isinstance(value, list) and re.fullmatch("-?[0-9]{1,7}", name):
            step = int(name)
        value = value_at((step,), value)
    return value


def path_text(path: Path) -> str:
    """A text that :func:`parse_path` reads as this path.

    >>> path_text(("tags", 0, "first name"))
    '$.tags[0]."first name"'
    """
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return '."' + step.replace("\\", "\\\\").replace('"', '\\"') + '"'


def placed(values: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """The object in which these paths lead to these values; where an array has no other, its elements are
    NULL.

    values: paths, of which the first step is a name, and what they lead to. Raises ValueError where two of
    the paths are not beside each other: one leads through another, or to an object where another has an
    array.

    >>> placed([(("a", "b"), 1), (("a", "c", 1), 2)])
    {'a': {'b': 1, 'c': [None, 2]}}
    """
    below: dict[str | int, list[tuple[Path, Any]]] = {}
    for path, value in values:
        below.setdefault(path[0], []).append((path[1:], value))
    found: dict[str, Any] = {str(step): _leads_to(rest) for step, rest in below.items()}
    return found


def _leads_to(rest: Sequence[tuple[Path, Any]]) -> Any:
    if len(rest) == 1 and not rest[0][0]:
        return rest[0][1]
    kinds = {type(path[0]) if path else None for path, _ in rest}
    if kinds == {str}:
        return placed(rest)
    if kinds != {int}:
        raise ValueError("these paths are not beside each other")
    elements: dict[int, list[tuple[Path, Any]]] = {}
    for path, value in rest:
        elements.setdefault(int(path[0]), []).append((path[1:], value))
    return [_leads_to(elements[place]) if place in elements else None for place in range(max(elements) + 1)]
