"""Names of queries: which texts can be one."""

from __future__ import annotations

import re

NAME_OPTION = "tureen.name"
"""The option in which a broker keeps the name of a query; records and requests have the field ``name``."""
CHARACTERS_MAX = 100
QUERY_NAME_TEXT = (
    f"a name has up to {CHARACTERS_MAX} small letters, digits, _ and -, begins with a letter or _, and does "
    "not look like a query id or a handle"
)
_NAME = re.compile(rf"[a-z_][a-z0-9_-]{{0,{CHARACTERS_MAX - 1}}}")
_ID_OR_HANDLE = re.compile("[a-z2-7]{26}|[a-z2-7]{32}")
"""A handle is a secret: nobody is to make a name of it by mistake."""
_PATHS = ("schema", "unregister", "validate")
"""What addresses have in the place of a query."""


def is_query_name(text: str) -> bool:
    """Whether a query may have this name.

    >>> is_query_name("late_flights"), is_query_name("Late"), is_query_name("fklvc3bvjnuijdg33d2uuitkbj")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None and not _ID_OR_HANDLE.fullmatch(text) and text not in _PATHS
