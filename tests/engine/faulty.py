"""A defect in the work of one query: methods raise wherever they work for it, also in graphs made anew.

What has no query as an argument works for the victim where it is of an object on its way down a graph, or
while its way is built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from weakref import WeakSet

from engine.dataflow.graph import Graph

VICTIM = "victim"


@dataclass
class Fault:
    """error: what is raised. is_armed: False: nothing is. hits: how often it was raised."""

    error: type[Exception]
    is_armed: bool = False
    hits: int = 0
    is_building: bool = False
    objects: WeakSet[Any] = field(default_factory=WeakSet)
    """Nodes and sinks that the victim depends on."""

    def strike(self, one: object) -> None:
        """Raises where an object works for the victim."""
        if self.is_armed and (self.is_building or one in self.objects):
            self.hits += 1
            raise self.error("injected")

    def mark(self, graph: Graph) -> None:
        """Know the way of the victim down a graph, if it is there."""
        for each in (*graph._nodes.values(), *(one.sink for one in graph._exits.values())):
            self.objects.discard(each)
        member = graph._members.get(VICTIM)
        if member is not None:
            self.objects.update(graph._nodes[key] for key in member.nodes)
            self.objects.add(graph._exits[member.sink].sink)


@contextmanager
def faulty(of: type, method: str, fault: Fault) -> Iterator[Fault]:
    """While a method of nodes or sinks raises in the work for the victim."""
    original: Callable[..., Any] = of.__dict__[method]
    add, remove = Graph.add, Graph.remove

    @functools.wraps(original)
    def struck(self: Any, *args: Any, **more: Any) -> Any:
        fault.strike(self)
        return original(self, *args, **more)

    def adding(graph: Graph, standing: Any, *args: Any, **more: Any) -> None:
        before, fault.is_building = fault.is_building, standing.query_id == VICTIM
        try:
            add(graph, standing, *args, **more)
        finally:
            fault.is_building = before
        fault.mark(graph)

    def removing(graph: Graph, query_id: str) -> None:
        remove(graph, query_id)
        fault.mark(graph)

    with (
        mock.patch.object(of, method, struck),
        mock.patch.object(Graph, "add", adding),
        mock.patch.object(Graph, "remove", removing),
    ):
        yield fault
