"""How large records may be: one number, from which the limits of topics and of producers are made.

The broker writes nothing larger: answers and registrations that are larger are refused, letters are cut,
steps of registrations are split. So what a producer takes, its topic takes as well.
"""

from __future__ import annotations

RECORD_BYTES_MAX = 4 * 1024 * 1024
"""The default; ``record_bytes_max`` of the settings."""
RECORD_BYTES_LEAST = 1024 * 1024
RECORD_OVERHEAD_BYTES = 1_024
"""More than what goes with the key and the value of a record: its headers, and the frame of its batch."""
BATCH_BYTES = 1_000_000
"""Records of a partition go together up to this; a larger one goes alone."""


def producing(record_bytes_max: int) -> dict[str, str]:
    """The setting of a producer whose topics take records of this size, frames included."""
    return {"message.max.bytes": str(record_bytes_max - RECORD_OVERHEAD_BYTES // 2)}
