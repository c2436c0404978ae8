"""Whether Kafka answers, asked once a second: shards that write nothing would not notice that it hangs."""

from __future__ import annotations

import asyncio

from broker.shard.stalls import Stall
from topics.admin import Admin
from tureen.errors import KafkaUnavailable

PERIOD_S = 1.0


class KafkaWatch:
    """``stall``: why Kafka does not answer; None while it does, and before it was asked."""

    def __init__(self, admin: Admin) -> None:
        """admin: gives up soon; its limit and a period are what passes until a hang is known."""
        self._admin = admin
        self.stall: Stall | None = None

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            try:
                await asyncio.to_thread(self._admin.reach)
            except KafkaUnavailable as away:
                self.stall = away.as_dict()
            else:
                self.stall = None
            await asyncio.sleep(PERIOD_S)
