"""Statements parsed once, though a registration is looked at more than once on its way: when HTTP checks it,
and when it is placed on a shard.

Valid for one catalogue: a stream that comes or goes begins anew. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from engine.language.query import Statement
from engine.language.statements import parse
from engine.limits import Limits
from engine.model.source import Stream

KEPT_MAX = 4_096


class Parsed:
    """Meanings of texts against a catalogue; at most :data:`KEPT_MAX`, the oldest go first."""

    def __init__(self, catalogue: Mapping[str, Stream], limits: Limits) -> None:
        self.catalogue = catalogue
        self._limits = limits
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Statement] = OrderedDict()

    def known(self, sql: str) -> Statement | None:
        """What was parsed before; costs nothing."""
        return self._known.get(sql)

    def statement(self, sql: str) -> Statement:
        """Raises what :func:`engine.language.statements.parse` raises; refusals are not kept."""
        known = self._known.get(sql)
        if known is None:
            known = parse(sql, self.catalogue, self._limits)
            with self._lock:
                self._known[sql] = known
                if len(self._known) > KEPT_MAX:
                    self._known.popitem(last=False)
        return known
