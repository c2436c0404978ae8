"""A defect in the work of one query: methods raise wherever they work for it, also in graphs made anew.

What has no query as an argument works for the victim where it is of an object on its way down a graph, or
while its way is built.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from weakref import WeakSet

from engine.dataflow.graph import Graph
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.queries.eager_answers import EagerAnswers
from engine.views.view import View

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
        for each in (*graph.nodes.by_key.values(), *(one.sink for one in graph.sinks.by_end.values())):
            self.objects.discard(each)
        member = graph._members.get(VICTIM)
        if member is not None:
            self.objects.update(graph.nodes.by_key[key] for key in member.nodes)
            self.objects.add(graph.sinks.by_end[member.sink].sink)


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


def _is_at_work(frame: types.FrameType | None) -> bool:
    """Whether what runs works for the answer of the victim."""
    while frame is not None:
        named, of = frame.f_locals, frame.f_locals.get("self")
        if isinstance(of, EagerAnswers) and named.get("query_id") == VICTIM:
            return True
        if isinstance(of, View) and named.get("query_id") == VICTIM:
            return True
        if isinstance(of, RankedAggregates) and (VICTIM in of or VICTIM in (named.get("queries") or ())):
            return True
        frame = frame.f_back
    return False


@contextmanager
def faulty_function(original: types.FunctionType, fault: Fault) -> Iterator[Fault]:
    """While a function, wherever it was imported to, raises in the work for the answer of the victim."""
    code = original.__code__
    whole = types.FunctionType(
        code, original.__globals__, original.__name__, original.__defaults__, original.__closure__
    )
    whole.__kwdefaults__ = original.__kwdefaults__

    def struck(*args: Any, **more: Any) -> Any:
        if fault.is_armed and _is_at_work(sys._getframe()):
            fault.hits += 1
            raise fault.error("injected")
        return whole(*args, **more)

    def instead(*args: Any, **more: Any) -> Any:
        return _struck(*args, **more)  # type: ignore[name-defined]  # noqa: F821

    with mock.patch.dict(original.__globals__, {"_struck": struck}):
        original.__code__ = instead.__code__
        try:
            yield fault
        finally:
            original.__code__ = code


def functions_of(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """Functions and methods that are written in a module, as far as they can be made to fail."""
    for one in vars(module).values():
        if getattr(one, "__module__", None) != module.__name__:
            continue
        for each in vars(one).values() if inspect.isclass(one) else (one,):
            found = getattr(each, "__func__", getattr(each, "fget", each))
            if not isinstance(found, types.FunctionType) or found.__closure__:
                continue
            if found.__module__ == module.__name__ and found.__code__.co_filename == module.__file__:
                yield found
