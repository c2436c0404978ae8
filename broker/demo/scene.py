"""What a run of the demo plays with, once everything stands."""

from __future__ import annotations

from dataclasses import dataclass

from broker.demo.audience import Audience
from broker.demo.bursts import Bursts
from broker.demo.flights import Data, Replayed
from broker.demo.promising import Promising
from broker.demo.queries import Standing
from broker.demo.replay import Replay
from broker.demo.services import Services
from tureen.client import Client
from tureen.protocol import Handle


@dataclass(frozen=True, slots=True)
class Scene:
    """Services, clients with their queries, and the files whose rows are replayed."""

    running: Services
    client: Client
    flights: Replayed
    data: Data
    """All files by their streams, to compare answers with."""
    audience: Audience
    """Thousands of queries over the flights."""
    board: Audience
    """The queries whose answers are drawn."""
    boards: Audience
    """Aggregates whose changes are written to result topics."""
    promising: Promising
    replay: Replay
    bursts: Bursts
    absent: Standing
    """The query of a client that went away with nothing but its handle."""
    handle: Handle
