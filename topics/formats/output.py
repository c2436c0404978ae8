"""JSON that compiled readers write: its parts, and a batch's texts.

A reader writes the texts of many records one after another. DOUBLEs are left out and put in afterwards, as
Arrow writes numbers: the shortest digits that give the same number.

Cost: some 1 ns a byte, and 0.1 us a DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topics.codec import RECORD_BYTES_MAX
from topics.compiled import borrowing, inlined

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

TEXT_BYTES_MAX = RECORD_BYTES_MAX
SLACK_BYTES = 256
"""What a value without text takes at most."""
BUFFER_BYTES = 8 * TEXT_BYTES_MAX
AT, LIMIT, NUMBERS = range(3)

_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class Output(NamedTuple):
    """What is written.

    data: uint8. state: int64[3], where the next byte goes (AT), beyond where the text of a record is too long
    (LIMIT), how many DOUBLEs were left out (NUMBERS). places, bits, singles: where they belong in ``data``,
    int64; their bits, int64; whether these are 32 alone, uint8. ends: int64[n, 2], AT and NUMBERS at the
    end of each record.
    """

    data: ByteArray
    state: Int64Array
    places: Int64Array
    bits: Int64Array
    singles: ByteArray
    ends: Int64Array


@inlined
def begin_text(out: Output) -> bool:
    """Begin a record's text; False: whether it would fit is not sure."""
    at = out.state[AT]
    out.state[LIMIT] = at + TEXT_BYTES_MAX
    return bool(at + TEXT_BYTES_MAX + SLACK_BYTES <= len(out.data))


@inlined
def end_text(out: Output, record: int, is_good: bool) -> None:
    """End a record's text; one that is not good leaves nothing."""
    if not is_good:
        out.state[AT] = out.state[LIMIT] - TEXT_BYTES_MAX
        out.state[NUMBERS] = out.ends[record - 1, 1] if record else 0
    out.ends[record, 0] = out.state[AT]
    out.ends[record, 1] = out.state[NUMBERS]


@inlined
def put_bytes(out: Output, source: ByteArray, begin: int, end: int) -> None:
    """Bytes as they are; nothing where they are too long, which LIMIT tells."""
    at = out.state[AT]
    if at + end - begin > out.state[LIMIT]:
        out.state[AT] = out.state[LIMIT] + 1
        return
    for place in range(begin, end):
        out.data[at] = source[place]
        at += 1
    out.state[AT] = at


@inlined
def put_byte(out: Output, byte: int) -> None:
    """One byte, for which there is room."""
    out.data[out.state[AT]] = byte
    out.state[AT] += 1


@inlined
def put_text(out: Output, source: ByteArray, begin: int, end: int) -> None:
    """A string of the bytes in UTF-8."""
    at, limit = out.state[AT], out.state[LIMIT]
    out.data[at] = 34
    at += 1
    for place in range(begin, end):
        if at > limit:
            break
        byte = source[place]
        if byte < 32:
            out.data[at], out.data[at + 1], out.data[at + 2], out.data[at + 3] = 92, 117, 48, 48
            out.data[at + 4], out.data[at + 5] = _HEX[byte >> 4], _HEX[byte & 15]
            at += 6
        else:
            if byte == 34 or byte == 92:
                out.data[at] = 92
                at += 1
            out.data[at] = byte
            at += 1
    out.data[at] = 34
    out.state[AT] = at + 1


@inlined
def put_base64(out: Output, source: ByteArray, begin: int, end: int) -> None:
    """A string of the bytes in base64."""
    at, place = out.state[AT], begin
    if at + (end - begin + 2) // 3 * 4 + 2 > out.state[LIMIT]:
        out.state[AT] = out.state[LIMIT] + 1
        return
    out.data[at] = 34
    at += 1
    while place < end:
        left = end - place
        word = np.int64(source[place]) << 16
        if left > 1:
            word |= np.int64(source[place + 1]) << 8
        if left > 2:
            word |= np.int64(source[place + 2])
        out.data[at] = _BASE64[word >> 18]
        out.data[at + 1] = _BASE64[word >> 12 & 63]
        out.data[at + 2] = _BASE64[word >> 6 & 63] if left > 1 else 61
        out.data[at + 3] = _BASE64[word & 63] if left > 2 else 61
        at += 4
        place += 3
    out.data[at] = 34
    out.state[AT] = at + 1


@inlined
def put_digits(out: Output, value: np.uint64, width: int) -> None:
    """Decimal digits, with zeros before them up to a width."""
    digits, left = 1, value // np.uint64(10)
    while left > np.uint64(0):
        digits += 1
        left //= np.uint64(10)
    digits = max(digits, width)
    end = out.state[AT] + digits
    for turn in range(digits):
        out.data[end - 1 - turn] = 48 + np.uint8(value % np.uint64(10))
        value //= np.uint64(10)
    out.state[AT] = end


@inlined
def put_integer(out: Output, value: int) -> None:
    """A number of 64 bits with a sign."""
    if value < 0:
        put_byte(out, 45)
        put_digits(out, np.uint64(0) - np.uint64(value), 1)
    else:
        put_digits(out, np.uint64(value), 1)


@inlined
def put_double(out: Output, bits: int, is_single: bool) -> None:
    """A number of 64 bits, or of 32; of NaN, Infinity, -Infinity the name in quotes."""
    count = out.state[NUMBERS]
    out.places[count] = out.state[AT]
    out.bits[count] = bits
    out.singles[count] = is_single
    out.state[NUMBERS] = count + 1


@inlined
def put_date(out: Output, days: int) -> bool:
    """A day since 1970 as YYYY-MM-DD; False: not in the years 1 to 9999. The calendar's civil date of a day:
    400 years have 146,097 days, years begin in March.
    """
    if days < -719_162 or days > 2_932_896:
        return False
    shifted = days + 719_468
    era = shifted // 146_097
    day = shifted - era * 146_097
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    put_byte(out, 34)
    put_digits(out, np.uint64(year + era * 400 + (1 if month >= 10 else 0)), 4)
    put_byte(out, 45)
    put_digits(out, np.uint64(month + 3 if month < 10 else month - 9), 2)
    put_byte(out, 45)
    put_digits(out, np.uint64(of_year - (153 * month + 2) // 5 + 1), 2)
    put_byte(out, 34)
    return True


@inlined
def put_decimal(out: Output, source: ByteArray, begin: int, end: int, scale: int) -> None:
    """A string of the decimal whose unscaled value the bytes are, big-endian in two's complement; of at most
    48 bytes, the first of which may be any number of sign bytes.
    """
    while end - begin > 1 and (source[begin] == 0 or source[begin] == 255):
        if (source[begin] >= 128) != (source[begin + 1] >= 128):
            break
        begin += 1
    negative = end > begin and source[begin] >= 128
    put_byte(out, 34)
    if negative:
        put_byte(out, 45)
    if end - begin <= 8:
        value = np.int64(-1 if negative else 0)
        for place in range(begin, end):
            value = value << 8 | np.int64(source[place])
        put_digits(out, np.uint64(0) - np.uint64(value) if negative else np.uint64(value), scale + 1)
    elif end - begin > 48:
        out.state[AT] = out.state[LIMIT] + 1
        return
    else:
        _put_long_digits(out, source, begin, end, scale + 1)
    if scale > 0:
        stop = out.state[AT]
        for place in range(stop, stop - scale, -1):
            out.data[place] = out.data[place - 1]
        out.data[stop - scale] = 46
        out.state[AT] = stop + 1
    put_byte(out, 34)


@borrowing
def _put_long_digits(out: Output, source: ByteArray, begin: int, end: int, width: int) -> None:
    """The digits of a big integer's magnitude: the bytes are divided by ten in the output's free room."""
    size = end - begin
    work = out.state[AT] + 128
    carry = np.int64(1 if source[begin] >= 128 else 0)
    flip = 255 if carry else 0
    for turn in range(size):
        value = (np.int64(source[end - 1 - turn]) ^ flip) + carry
        out.data[work + size - 1 - turn] = value & 255
        carry = value >> 8
    digits = 0
    last = out.state[AT] + 127
    while True:
        rest, above = np.int64(0), np.int64(0)
        for turn in range(size):
            rest = rest << 8 | np.int64(out.data[work + turn])
            out.data[work + turn] = rest // 10
            above |= rest // 10
            rest %= 10
        out.data[last - digits] = 48 + rest
        digits += 1
        if above == 0 and digits >= width:
            break
    for turn in range(digits):
        out.data[out.state[AT] + turn] = out.data[last - digits + 1 + turn]
    out.state[AT] += digits


@inlined
def put_uuid(out: Output, source: ByteArray, begin: int) -> None:
    """A string of 16 bytes as a UUID is written."""
    put_byte(out, 34)
    for turn in range(16):
        if turn == 4 or turn == 6 or turn == 8 or turn == 10:
            put_byte(out, 45)
        put_byte(out, _HEX[source[begin + turn] >> 4])
        put_byte(out, _HEX[source[begin + turn] & 15])
    put_byte(out, 34)


@borrowing
def _merge(
    data: ByteArray, places: Int64Array, texts: ByteArray, ends: npt.NDArray[np.int32], out: ByteArray
) -> None:
    at, to = 0, 0
    for turn in range(len(places)):
        while at < places[turn]:
            out[to] = data[at]
            at += 1
            to += 1
        for place in range(ends[turn], ends[turn + 1]):
            out[to] = texts[place]
            to += 1
    while at < len(data):
        out[to] = data[at]
        at += 1
        to += 1


Run = Callable[[ByteArray, Int64Array, int, Output, ByteArray], int]
"""Writes records: (data, where each ends, the first, output, verdicts) -> the first that is not written."""


def transcoded(
    values: Sequence[bytes], run: Run, number_bytes: int = 0
) -> tuple[list[bytes | None], ByteArray]:
    """The text of each record, and uint8[n], the reader's verdicts; 0: it is good. number_bytes: what a
    DOUBLE takes in a record at least; 0: there are none.
    """
    data = np.frombuffer(b"".join(values), np.uint8)
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    verdicts = np.zeros(len(values), np.uint8)
    numbers = len(data) // number_bytes + 1 if number_bytes else 0
    found: list[bytes | None] = []
    cuts = np.zeros((len(values), 2), np.int64)
    while len(found) < len(values):
        first = len(found)
        out = Output(
            np.empty(BUFFER_BYTES, np.uint8),
            np.zeros(3, np.int64),
            np.empty(numbers, np.int64),
            np.empty(numbers, np.int64),
            np.empty(numbers, np.uint8),
            cuts,
        )
        if first:
            cuts[first - 1] = 0
        stop = run(data, ends, first, out, verdicts)
        found += _finished(out, cuts[first:stop])
    return found, verdicts


def _finished(out: Output, ends: Int64Array) -> list[bytes | None]:
    """The texts that were written. ends: as in :class:`Output`."""
    data, count = out.data[: out.state[AT]], int(out.state[NUMBERS])
    cuts = ends[:, 0]
    if count:
        bits, singles = out.bits[:count], out.singles[:count] != 0
        numbers = bits.view(np.float64)
        if singles.any():
            numbers = np.where(singles, bits.astype(np.uint32).view(np.float32).astype(np.float64), numbers)
        texts = pc.cast(pa.array(numbers, pa.float64()), pa.string())
        wild = ~np.isfinite(numbers)
        if wild.any():
            signed = np.where(numbers > 0, '"Infinity"', '"-Infinity"')
            named = np.where(np.isnan(numbers), '"NaN"', signed)
            texts = pc.if_else(pa.array(wild), pa.array(named.tolist(), pa.string()), texts)
        _, offsets, digits = texts.buffers()
        text_ends = np.frombuffer(offsets, np.int32)[: count + 1]
        merged = np.empty(len(data) + int(text_ends[-1]), np.uint8)
        _merge(data, out.places[:count], np.frombuffer(digits, np.uint8), text_ends, merged)
        cuts = cuts + text_ends[ends[:, 1]]
        data = merged
    raw = data.tobytes()
    found, begin = list[bytes | None](), 0
    for end in cuts.tolist():
        found.append(raw[begin:end])
        begin = end
    return found
