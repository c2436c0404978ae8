"""Change events of Debezium that are plain, many at once: the text of a row is cut out of that of its event.

What is plain: JSON, an op of c, r, u or d, rows that are objects where the op has them, no schema beside the
payload, and no day or instant in another unit than JSON's. Of other events nothing is decided here.

Cost: some 6 ns a byte of events of 400 bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from engine.model.batch import BoolArray, Int64Array
from engine.model.paths import Path
from engine.model.types import Kind
from topics.arrow_reader import is_utf8
from topics.scan import ends_of
from topics.spans import extraction

LEAST = 64
"""Records are looked at one by one where so few are not all JSON."""
_MS_DIGITS_MAX = 14
_MEMBERS: tuple[Path, ...] = (("before",), ("after",), ("op",))
_NO_COLUMNS = pj.ParseOptions(
    explicit_schema=pa.schema([pa.field("", pa.null())]), unexpected_field_behavior="ignore"
)

Told = tuple[slice, list[bytes | None], BoolArray]
"""Places of events, the text of each, None of one that deletes; and which of these are plain."""


def plain_events(
    values: Sequence[bytes], convertible: Sequence[tuple[str, Kind]], changelog: bool
) -> Iterator[Told]:
    """The rows of events. convertible: columns that Debezium may have in other units. changelog: as of
    :class:`topics.formats.debezium.Debezium`.
    """
    parts = [slice(0, len(values))]
    while parts:
        part = parts.pop()
        told = _told(values[part], convertible, changelog)
        size = part.stop - part.start
        if told is not None:
            yield part, *told
        elif size <= LEAST:
            yield part, [None] * size, np.zeros(size, np.bool_)
        else:
            cuts = [*range(part.start, part.stop, -(-size // 4)), part.stop]
            parts += [slice(start, stop) for start, stop in itertools.pairwise(cuts)]


def _told(
    values: Sequence[bytes], convertible: Sequence[tuple[str, Kind]], changelog: bool
) -> tuple[list[bytes | None], BoolArray] | None:
    """The texts of events and which are plain; nothing where not all are JSON."""
    data = b"\n".join(values)
    bytes_ = np.frombuffer(data, np.uint8)
    rows = [(side, name) for name, _ in convertible for side in ("before", "after")]
    paths = (*_MEMBERS, *rows)
    wanted = extraction((("schema",), ("payload",), *paths, *(("payload", *path) for path in paths)))
    spans, odd = wanted.spans(bytes_, ends_of(values))
    if odd.any() or not _is_json(data, len(values)):
        return None
    schema, payload = spans[:, 0], spans[:, 1]
    wrapped = (schema[:, 0] >= 0) & (payload[:, 0] >= 0)
    middle = 2 + len(paths)
    event = np.where(wrapped[:, None, None], spans[:, middle:], spans[:, 2:middle])
    before, after, op = event[:, 0], event[:, 1], event[:, 2]
    letter = np.where(op[:, 1] - op[:, 0] == 3, bytes_[np.maximum(op[:, 0], 0) + 1], 0)
    has_old, has_new = _first(bytes_, before) == ord("{"), _first(bytes_, after) == ord("{")
    no_old = (before[:, 0] < 0) | (_first(bytes_, before) == ord("n"))
    no_new = (after[:, 0] < 0) | (_first(bytes_, after) == ord("n"))
    deletes = letter == ord("d")
    plain = np.where(deletes, no_new & (has_old | (no_old & (not changelog))), has_new & (has_old | no_old))
    plain &= deletes | np.isin(letter, [ord("c"), ord("r"), ord("u")])
    plain &= ~wrapped | (_first(bytes_, schema) == ord("n"))
    for place, (_, kind) in enumerate(convertible):
        for at in (event[:, 3 + 2 * place], event[:, 4 + 2 * place]):
            plain &= ~_is_other(_first(bytes_, at), at[:, 1] - at[:, 0], kind)
    begins, stops = (np.where(deletes, before[:, end], after[:, end]).tolist() for end in (0, 1))
    texts: list[bytes | None] = [data[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
    if not changelog:
        for gone in np.flatnonzero(deletes).tolist():
            texts[gone] = None
    return texts, plain


def _is_json(data: bytes, n: int) -> bool:
    """Whether n lines, each one pair of brackets, are JSON."""
    if not is_utf8(data):
        return False
    try:
        options = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        table = pj.read_json(pa.BufferReader(data), read_options=options, parse_options=_NO_COLUMNS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return bool(table.num_rows == n)


def _first(bytes_: npt.NDArray[np.uint8], spans: Int64Array) -> npt.NDArray[np.uint8]:
    """uint8[n]: what each value begins with, 0 where there is none."""
    return np.where(spans[:, 0] >= 0, bytes_[np.maximum(spans[:, 0], 0)], 0).astype(np.uint8)


def _is_other(first: npt.NDArray[np.uint8], size: Int64Array, kind: Kind) -> BoolArray:
    """Whether a day or an instant may have to be changed: any number of days, a long number of an instant."""
    is_number = ((first >= ord("0")) & (first <= ord("9"))) | (first == ord("-"))
    found: BoolArray = is_number if kind is Kind.DATE else is_number & (size > _MS_DIGITS_MAX)
    return found
