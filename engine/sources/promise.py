"""Whether a stream takes a heartbeat: a promise that no row of a partition below an instant follows.

Such promises are the heartbeats of STREAM: U. Srivastava, J. Widom, "Flexible Time Management in Data Stream
Systems", PODS 2004.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.model.source import Stream
from tureen.errors import HeartbeatRefused


def check_promise(stream: Stream, below: Mapping[int, int], clock_ms: int) -> None:
    """below: partition -> ms since 1970. Raises HeartbeatRefused: the stream has no event time, or an
    instant lies too far ahead of the clock, as that of a row may.
    """
    if not stream.event_time:
        raise HeartbeatRefused(
            f"{stream.name} runs by the time of arrival, which goes on by itself",
            hint="heartbeats are for streams that declare a timestamp column",
        )
    limit_ms = clock_ms + stream.future_max_ms
    furthest_ms = max(below.values())
    if furthest_ms > limit_ms:
        raise HeartbeatRefused(
            f"the heartbeat {furthest_ms} is beyond the clock plus future_max ({limit_ms} ms since 1970)",
            hint="ms counts milliseconds since 1970; look at the clock of the sender",
        )
