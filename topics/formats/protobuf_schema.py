"""Protobuf schemas as descriptors: proto2, proto3 and editions, as protoc reads them.

A schema is text, or the base64 of its descriptor, which some clients register. What it imports stands among
its references, is one of Google's well-known types, or one of those that Confluent's registry has of itself.
protoc runs in this process; it reads files, so texts are written to a directory for the moment.

Cost: about 1 ms, and 1 us a byte.
"""

from __future__ import annotations

import base64
import re
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import google.type
import grpc_tools
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from topics.formats.unreadable import UnreadableSchema

BYTES_MAX = 1 << 19
"""Most bytes of a schema with all that it refers to."""
NAME = "schema.proto"
"""What a schema's own file is called."""

_ROOT = "all.proto"
_OF_CONFLUENT: Mapping[str, str] = {
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type; '
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
    "confluent/types/decimal.proto": 'syntax = "proto3"; import public "confluent/type/decimal.proto";',
    "confluent/meta.proto": 'syntax = "proto3"; package confluent; '
    'import "google/protobuf/descriptor.proto"; '
    "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; "
    "repeated Rule rules = 4; } "
    "message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; } "
    "extend google.protobuf.FileOptions { Meta file_meta = 1088; } "
    "extend google.protobuf.MessageOptions { Meta message_meta = 1088; } "
    "extend google.protobuf.FieldOptions { Meta field_meta = 1088; } "
    "extend google.protobuf.EnumOptions { Meta enum_meta = 1088; } "
    "extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }",
}
"""Files that a registry need not be given."""
_KNOWN = (Path(grpc_tools.__file__).parent / "_proto", Path(next(iter(google.type.__path__))).parents[1])
"""Where Google's files are."""
_SYNTAX = re.compile(r"\b(syntax|edition)\s*=\s*[\"']")
_one_at_a_time = threading.Lock()


def parse_schema(text: str, references: Mapping[str, str] | None = None) -> FileDescriptor:
    """The file of a schema. references: schemas by the names of their files. Raises UnreadableSchema."""
    given = {**(references or {}), NAME: text}
    if sum(map(len, given.values())) > BYTES_MAX:
        raise UnreadableSchema(f"it has more than {BYTES_MAX:,} bytes")
    encoded = {name: _decoded(name, one) for name, one in given.items()}
    files = [one for one in encoded.values() if one is not None]
    if not files:
        return _pooled(_compiled(given, [NAME]))
    if len(files) < len(given):
        raise UnreadableSchema("it and its references are not all text, or all descriptors in base64")
    imported = dict.fromkeys(name for one in files for name in one.dependency)
    return _pooled([*_compiled({}, [name for name in imported if name not in given]), *files])


def message_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """The message that the indexes of a record lead to: in the file, then in the message, each among those
    that are declared there; entries of maps count. Raises UnreadableSchema.
    """
    found: Descriptor | None = None
    inside = list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(inside):
            found = None
            break
        found = inside[index]
        inside = list(found.nested_types)
    if found is None or found.GetOptions().map_entry:
        raise UnreadableSchema(f"it has no message of the indexes {list(indexes)[:10]}")
    return found


def message_named(file: FileDescriptor, name: str | None) -> Descriptor:
    """A message by its name, with or without the package; None: the only one. Raises UnreadableSchema."""
    messages = {one.full_name: one for one in _messages(file.message_types_by_name.values())}
    if name is None:
        if len(file.message_types_by_name) != 1:
            some = ", ".join(list(messages)[:10]) or "none"
            raise UnreadableSchema(f"message = '...' has to say which of its messages they are: {some}")
        return next(iter(messages.values()))
    found = messages.get(name) or messages.get(f"{file.package}.{name}")
    if found is None:
        some = ", ".join(list(messages)[:10]) or "none"
        raise UnreadableSchema(f"it has no message {name[:100]!r}, but {some}")
    return found


def _messages(declared: Iterable[Descriptor]) -> list[Descriptor]:
    """Messages and those inside of them, without entries of maps."""
    found = []
    for one in declared:
        if not one.GetOptions().map_entry:
            found += [one, *_messages(one.nested_types)]
    return found


def _decoded(name: str, text: str) -> FileDescriptorProto | None:
    """The descriptor whose base64 a text is; None: it is another text."""
    try:
        made = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    made.name = name
    return made


def _pooled(files: Sequence[FileDescriptorProto]) -> FileDescriptor:
    """The file of the schema, linked with those that it imports."""
    pool = DescriptorPool()
    waiting = {one.name: one for one in files}
    try:
        while waiting:
            ready = [one for one in waiting.values() if not waiting.keys() & set(one.dependency)]
            if not ready:
                raise UnreadableSchema("its files import each other")
            for one in ready:
                pool.AddSerializedFile(waiting.pop(one.name).SerializeToString())
        return pool.FindFileByName(NAME)
    except (TypeError, KeyError) as refused:
        raise UnreadableSchema(f"it is no descriptor: {str(refused)[:300]}") from None


def _compiled(texts: Mapping[str, str], wanted: Sequence[str]) -> list[FileDescriptorProto]:
    """What protoc makes of files and all that they import."""
    from grpc_tools import _protoc_compiler  # 6 MB, for those who read Protobuf alone

    for name in texts:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in name or len(name) > 200:
            raise UnreadableSchema(f"it refers to {name[:100]!r}, which is no name of a file")
    with tempfile.TemporaryDirectory(prefix="protobuf") as made, _one_at_a_time:
        directory = Path(made)
        # A file that imports the others: of what is not used in the first file protoc prints warnings.
        root = 'syntax = "proto3";' + "".join(f'import public "{name}";' for name in wanted)
        try:
            for name, text in {**_OF_CONFLUENT, **texts, _ROOT: root}.items():
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text if _SYNTAX.search(text) else f'syntax = "proto2"; {text}', "utf-8")
        except (OSError, UnicodeEncodeError):
            raise UnreadableSchema("its references have names that are no names of files") from None
        paths = [str(path).encode() for path in (*_KNOWN, directory)]
        try:
            _protoc_compiler.get_protos(_ROOT.encode(), paths)
        except _protoc_compiler.ProtocErrors as refused:
            raise UnreadableSchema(_said(refused.errors())) from None
        out = directory / "descriptors"
        flags = [b"-I" + path for path in paths]
        arguments = [b"--include_imports", b"--descriptor_set_out=" + str(out).encode(), _ROOT.encode()]
        _protoc_compiler.run_main([b"protoc", *flags, *arguments])
        made_of = FileDescriptorSet.FromString(out.read_bytes()).file
    return [one for one in made_of if one.name != _ROOT]


def _said(errors: Sequence[object]) -> str:
    """The first of protoc's errors."""
    first: Any = errors[0]
    name, message = first.filename.decode()[:100], first.message.decode("utf-8", "replace")[:300]
    if first.line < 0:
        return f"it imports {name!r}, which is none of its references"
    where = f"line {first.line + 1}"
    return f"{where}: {message}" if name == NAME else f"{name}, {where}: {message}"
