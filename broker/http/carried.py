"""What is carried out for callers, whichever door they come by: made once, shared by HTTP and PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

from broker.base.settings import Settings
from broker.http.creations import Creations
from broker.http.drops import Drops
from broker.http.endings import Endings
from broker.http.inference import Inference
from broker.http.options import QueryChanges
from broker.http.statements import Statements
from broker.http.summaries import SummaryRequests
from broker.http.writes import Writes
from broker.node.node import Node
from broker.runtime.publisher import Publisher
from broker.runtime.reader_compilation import ReaderCompilation


@dataclass(frozen=True, slots=True)
class Carried:
    """Each carries out requests of its kind."""

    writes: Writes
    endings: Endings
    changes: QueryChanges
    summaries: SummaryRequests
    inference: Inference
    creations: Creations
    drops: Drops
    statements: Statements

    @classmethod
    def made(
        cls, settings: Settings, node: Node, publisher: Publisher, readers: ReaderCompilation
    ) -> Carried:
        """For one node."""
        writes = Writes(settings, node, publisher)
        endings = Endings(settings, node, writes, publisher)
        changes = QueryChanges(node, writes)
        summaries = SummaryRequests(settings, node, writes)
        inference = Inference(settings, node, readers)
        drops = Drops(settings, node, writes, endings, summaries)
        creations = Creations(settings, node, writes, drops, summaries, inference)
        statements = Statements(settings, node, endings, creations, changes, summaries, writes)
        return cls(writes, endings, changes, summaries, inference, creations, drops, statements)
