"""Tags of answers as headers have them: a JSON array in ASCII, of bounded length.

Where all tags would be too long, as many as fit are followed by ``{"more": n}``: so many others there are.
An exact answer has the empty array, or no header at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

HEADER_BYTES_MAX = 4_096
"""Most bytes of a header's value. HTTP clients and proxies mostly take 8 KiB of all headers together."""


class Tag(Protocol):
    """A tag, or whatever else an answer says of itself in a list."""

    def as_dict(self) -> Mapping[str, Any]: ...


def header_text(tags: Sequence[Tag], bytes_max: int = HEADER_BYTES_MAX) -> str:
    """The value of the header. bytes_max: at least 64."""
    texts = [json.dumps(tag.as_dict(), separators=(",", ":")) for tag in tags]
    whole = f"[{','.join(texts)}]"
    if len(whole) <= bytes_max:
        return whole
    kept: list[str] = []
    size = len('[{"more":}]') + len(str(len(texts)))
    for text in texts:
        size += len(text) + 1
        if size > bytes_max:
            break
        kept.append(text)
    rest = json.dumps({"more": len(texts) - len(kept)}, separators=(",", ":"))
    return f"[{','.join([*kept, rest])}]"
