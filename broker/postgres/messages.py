"""Messages of PostgreSQL's protocol 3.0: one table of those that clients send, and those that we send.

A message is a letter, its length in 4 bytes (itself included), and its fields; numbers are big-endian, texts
end with a zero byte. The first message of a connection has no letter. What does not follow that is refused
by :class:`ProtocolViolation`: nothing is read past the end of a message.

Source: PostgreSQL's documentation, "Frontend/Backend Protocol", "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tureen.errors import TureenError

PROTOCOL = 3 << 16
"""Version 3.0; a client that asks for a later minor one is told that this is what there is."""
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
STARTUP_BYTES_MAX = 10_000
"""As PostgreSQL itself has it."""
PASSWORD_BYTES_MAX = 4_096
COLUMNS_MAX = 32_767
PARAMETERS_MAX = 65_535

_INT16, _INT32, _UINT16 = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!H")


class ProtocolViolation(TureenError):
    """A message that the protocol does not have, or not here; the connection ends."""

    code = "protocol_violation"


class Simple(NamedTuple):
    """Q: a text of any number of statements."""

    sql: str


class Parse(NamedTuple):
    """P: prepare a statement. types: of its parameters, as far as the client says; 0: it does not."""

    name: str
    sql: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    """B: a portal is a statement with values. formats: 0 text, 1 binary: one for each, one for all, or none:
    text.
    """

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    """D: columns of a portal (P), or parameters and columns of a statement (S)."""

    kind: str
    name: str


class Execute(NamedTuple):
    """E: the next rows of a portal, so many at most; 0: all."""

    portal: str
    rows_max: int


class Close(NamedTuple):
    """C: forget a portal (P) or a statement (S)."""

    kind: str
    name: str


class Sync(NamedTuple):
    """S: the end of a group of messages; after an error the others are passed over until it comes."""


class Flush(NamedTuple):
    """H: send what is ready."""


class Terminate(NamedTuple):
    """X: the client goes."""


class Password(NamedTuple):
    """p: a step of authentication."""

    data: bytes


class Copied(NamedTuple):
    """d, c, f: data of a COPY FROM, which there is none of; PostgreSQL drops such messages too."""


Message = Simple | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | Password | Copied


class _Reader:
    """The fields of one message. Every read raises ProtocolViolation where it would end behind it."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def text(self) -> str:
        end = self._data.find(0, self._at)
        if end < 0:
            raise ProtocolViolation("a text of a message has no end")
        found, self._at = self._data[self._at : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise NotUnicode from None

    def raw(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ProtocolViolation("a message ends before its fields do")
        found, self._at = self._data[self._at : end], end
        return found

    def letter(self) -> str:
        found = self.raw(1).decode("latin-1")
        if found not in "SP":
            raise ProtocolViolation(f"there is no kind {found!r} of what is described or closed")
        return found

    def int16(self) -> int:
        return int(_INT16.unpack(self.raw(2))[0])

    def uint16(self) -> int:
        return int(_UINT16.unpack(self.raw(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.raw(4))[0])

    def formats(self) -> tuple[int, ...]:
        found = tuple(self.int16() for _ in range(self.uint16()))
        if not {*found} <= {0, 1}:
            raise ProtocolViolation("a format is 0 (text) or 1 (binary)")
        return found

    def rest(self) -> bytes:
        return self.raw(len(self._data) - self._at)

    def end(self) -> None:
        if self._at != len(self._data):
            raise ProtocolViolation("a message is longer than its fields")


class NotUnicode(TureenError):
    """A text that is not UTF-8; the connection goes on."""

    code = "not_unicode"

    def __init__(self) -> None:
        super().__init__("a text is not valid UTF-8", hint="set the client's encoding to UTF8")


def _bind(r: _Reader) -> Bind:
    portal, statement, formats = r.text(), r.text(), r.formats()
    sizes = r.uint16()
    values = tuple(None if (size := r.int32()) == -1 else r.raw(size) for _ in range(sizes))
    if len(formats) not in (0, 1, len(values)):
        raise ProtocolViolation(f"{len(formats)} formats are given for {len(values)} parameters")
    return Bind(portal, statement, formats, values, r.formats())


def _copied(r: _Reader) -> Copied:
    r.rest()
    return Copied()


_FRONTEND: dict[bytes, Callable[[_Reader], Message]] = {
    b"Q": lambda r: Simple(r.text()),
    b"P": lambda r: Parse(r.text(), r.text(), tuple(r.int32() & 0xFFFFFFFF for _ in range(r.uint16()))),
    b"B": _bind,
    b"D": lambda r: Describe(r.letter(), r.text()),
    b"E": lambda r: Execute(r.text(), r.int32()),
    b"C": lambda r: Close(r.letter(), r.text()),
    b"S": lambda r: Sync(),
    b"H": lambda r: Flush(),
    b"X": lambda r: Terminate(),
    b"p": lambda r: Password(r.rest()),
    b"d": _copied,
    b"c": _copied,
    b"f": _copied,
}
"""By letter: how the fields of a message are read."""


def require_known(letter: bytes) -> None:
    """Raise ProtocolViolation for a letter that begins no message of a client."""
    if letter not in _FRONTEND:
        raise ProtocolViolation(f"there is no message {letter!r} of clients")


def read(letter: bytes, body: bytes) -> Message:
    """A message of a client. Raises ProtocolViolation, NotUnicode."""
    reader = _Reader(body)
    message = _FRONTEND[letter](reader)
    reader.end()
    return message


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message: the code of a request, or a version, with what the client says of itself.

    key: of a request to cancel: which connection (4 bytes), and its secret.
    """

    code: int
    parameters: dict[str, str]
    key: bytes = b""


def read_startup(body: bytes) -> Startup:
    """The message without its length. Raises ProtocolViolation, NotUnicode."""
    reader = _Reader(body)
    code = reader.int32()
    if code == CANCEL_REQUEST:
        return Startup(code, {}, reader.rest())
    if code in (SSL_REQUEST, GSS_REQUEST):
        reader.end()
        return Startup(code, {})
    if code >> 16 != PROTOCOL >> 16:
        raise ProtocolViolation(
            f"protocol {code >> 16}.{code & 0xFFFF} is not spoken here, 3.0 is",
            hint="this is a door for clients of PostgreSQL; HTTP has another port",
        )
    parameters: dict[str, str] = {}
    while name := reader.text():
        parameters[name] = reader.text()
    reader.end()
    return Startup(code, parameters)


# --- what we send -----------------------------------------------------------------------------------


def _message(letter: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return letter + _INT32.pack(len(body) + 4) + body


def _text(value: str) -> bytes:
    """Without zero bytes, which would end it."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATED = _message(b"R", _INT32.pack(0))
PARSED = _message(b"1")
BOUND = _message(b"2")
CLOSED = _message(b"3")
NO_DATA = _message(b"n")
SUSPENDED = _message(b"s")
EMPTY = _message(b"I")
COPIED = _message(b"c")
_READY = {status: _message(b"Z", status.encode()) for status in "ITE"}


def ready(status: str) -> bytes:
    """status: I idle, T in a transaction, E in one that failed."""
    return _READY[status]


def sasl(mechanisms: Sequence[str]) -> bytes:
    """The mechanisms by which a client may prove who it is."""
    return _message(b"R", _INT32.pack(10), *map(_text, mechanisms), b"\0")


def sasl_continue(data: bytes) -> bytes:
    """The server's first message of an exchange."""
    return _message(b"R", _INT32.pack(11), data)


def sasl_final(data: bytes) -> bytes:
    """Its last one."""
    return _message(b"R", _INT32.pack(12), data)


def parameter_status(name: str, value: str) -> bytes:
    """A setting that a client is to know."""
    return _message(b"S", _text(name), _text(value))


def key_data(process: int, secret: bytes) -> bytes:
    """What a client names to cancel."""
    return _message(b"K", _INT32.pack(process), secret)


def negotiated(unknown: Sequence[str]) -> bytes:
    """The version that is spoken, and the options of the protocol that are not known."""
    return _message(b"v", _INT32.pack(PROTOCOL), _INT32.pack(len(unknown)), *map(_text, unknown))


def complete(tag: str) -> bytes:
    """A statement is done."""
    return _message(b"C", _text(tag))


def parameter_types(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return _message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


class Field(NamedTuple):
    """A column of an answer: its name, and its type by oid, size in bytes (-1: it varies) and modifier."""

    name: str
    oid: int
    size: int
    modifier: int = -1


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    """formats: of each column."""
    return _message(
        b"T",
        _INT16.pack(len(fields)),
        *(
            _text(one.name) + struct.pack("!IhIhih", 0, 0, one.oid, one.size, one.modifier, form)
            for one, form in zip(fields, formats, strict=True)
        ),
    )


def copy_out(columns: int, form: int) -> bytes:
    """form: 0 text, 1 binary."""
    return _message(b"H", struct.pack(f"!bH{columns}H", form, columns, *([form] * columns)))


def error(fields: Sequence[tuple[str, str]]) -> bytes:
    """fields: by letter, of an ErrorResponse."""
    return _message(b"E", *(letter.encode() + _text(value) for letter, value in fields), b"\0")


def notice(fields: Sequence[tuple[str, str]]) -> bytes:
    """fields: by letter, of a NoticeResponse."""
    return _message(b"N", *(letter.encode() + _text(value) for letter, value in fields), b"\0")
