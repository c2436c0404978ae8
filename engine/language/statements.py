"""Text to statement: the language's front door.

``parse`` is pure and total: any text gives a statement or an error of :mod:`tureen.errors`, within time in
proportion
to its length. Cost: about a millisecond for a simple SELECT.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.language.bind.select import bind_select
from engine.language.bind.streams import bind_create, bind_drop
from engine.language.dialect import parse_tree
from engine.language.grammar import nodes
from engine.language.places import Text
from engine.language.query import Statement
from engine.limits import Limits
from engine.model.source import Stream
from tureen.errors import SyntaxRefused


def parse(sql: str, catalogue: Mapping[str, Stream], limits: Limits) -> Statement:
    """Parse and bind one statement against the streams there are.

    Raises SyntaxRefused, UnknownSource, UnknownColumn, TypeMismatch, NotSupported, LimitExceeded, each with
    the line and
    the column (from 1) of what is wrong, and mostly with a hint.
    """
    text = Text(sql)
    _check_size(text, limits)
    try:
        tree = parse_tree(text, limits)
        if isinstance(tree, nodes.StreamQuery):
            return bind_select(tree, text, catalogue, limits)
        if isinstance(tree, nodes.CreateStreamNode):
            return bind_create(tree, text, limits)
        return bind_drop(tree)
    except RecursionError:
        # Nesting is bounded, so this is a caller whose own stack was almost full.
        raise text.at(0).exceeded("nesting_max", limits.nesting_max, hint="nest less") from None


def _check_size(text: Text, limits: Limits) -> None:
    if len(text.sql) > limits.sql_bytes_max:
        raise text.at(0).exceeded("sql_bytes_max", limits.sql_bytes_max, hint="send a shorter text")
    try:
        size = len(text.sql.encode())
    except UnicodeEncodeError as error:
        raise text.at(error.start).refuse(
            SyntaxRefused, "this character is half of a surrogate pair"
        ) from None
    if size > limits.sql_bytes_max:
        raise text.at(0).exceeded("sql_bytes_max", limits.sql_bytes_max, size, hint="send a shorter text")
