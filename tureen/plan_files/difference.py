"""What differs between two plans, line by line, with paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """(sign, path, before, after); sign: ``-`` is gone, ``+`` came, ``~`` changed.

    The order of columns counts, that of other names does not.

    >>> list(differences({"options": {"weight": 1}}, {"options": {"weight": 2, "strategy": "upa"}}))
    [('~', 'options.weight', 1, 2), ('+', 'options.strategy', None, 'upa')]
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if path.endswith((".columns", ".keys", ".calls")) and [*one] != [*other] and {*one} == {*other}:
            yield "~", path, ", ".join(one), ", ".join(other)
        for name in (*one, *(name for name in other if name not in one)):
            below = f"{path}.{name}" if path else str(name)
            if name not in other:
                yield "-", below, one[name], None
            elif name not in one:
                yield "+", below, None, other[name]
            else:
                yield from differences(one[name], other[name], below)
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield "~", path or "plan", one, other
