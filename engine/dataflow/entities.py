"""Operators and sinks of a graph as entities: under which ids they are told of, and who shares them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from engine.dataflow.node import Node
from engine.model.source import SourceName
from engine.model.usage import Usage

DIGEST_BYTES = 6


@dataclass(frozen=True, slots=True)
class OperatorEntity:
    """An operator, or a sink (node: None). queries: how many share it. reads: ids of those below; where there
    are none, it takes rows of ``sources``.
    """

    id: str
    usage: Usage
    queries: int
    reads: tuple[str, ...]
    node: Node | None
    sources: tuple[SourceName, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphEntities:
    """Names the operators of a graph as entities. below: the operators that each sink depends on, by the
    sink's id. sink_of: the sink of each query, by query id.
    """

    operators: Sequence[OperatorEntity]
    below: Mapping[str, Sequence[str]]
    sink_of: Mapping[str, str]


def digest(key: Hashable) -> str:
    """A short name of a node's key: the same wherever the same operator is made."""
    return hashlib.blake2b(repr(key).encode(), digest_size=DIGEST_BYTES).hexdigest()


def word_of(node: Node) -> str:
    """What kind of operator it is.

    >>> from engine.dataflow.operators.join import InnerJoinNode
    >>> word_of(object.__new__(InnerJoinNode))
    'inner-join'
    """
    name = type(node).__name__.removesuffix("Node")
    return "".join(f"-{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
