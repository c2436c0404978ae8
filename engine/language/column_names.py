"""Names of columns where two stand beside each other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.model.types import Type


def with_inner(left: Sequence[tuple[str, Type]], inner: Sequence[tuple[str, Type]]) -> list[tuple[str, Type]]:
    """The columns of a join: names that come twice get a number."""
    found = list(left)
    taken = {name for name, _ in found}
    for name, type_ in inner:
        other = another(name, taken)
        taken.add(other)
        found.append((other, type_))
    return found


def another(name: str, taken: Collection[str]) -> str:
    """The name, with a number where it is taken."""
    other, count = name, 1
    while other in taken:
        count += 1
        other = f"{name}_{count}"
    return other
