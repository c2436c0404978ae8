"""Raw records: the whole value is one column, text of a STRING, bytes of BYTES.

Cost: about 0.5 us a record beside what the JSON costs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from topics.formats.texts import Texts


@dataclass(frozen=True, slots=True)
class Raw:
    """column: its name. is_text: it is a STRING."""

    column: str
    is_text: bool

    def texts(self, values: Sequence[bytes]) -> Texts:
        found: list[bytes | None] = []
        bad: dict[int, str] = {}
        head = b"{" + orjson.dumps(self.column) + b":"
        for place, value in enumerate(values):
            try:
                text = orjson.dumps(value.decode()) if self.is_text else b'"%s"' % base64.b64encode(value)
            except UnicodeDecodeError as error:
                bad[place] = f"not UTF-8: {error.reason} at byte {error.start}; BYTES takes any bytes"
                text = b"null"
            found.append(head + text + b"}")
        return Texts(found, bad)
