"""The messages of Flight SQL, which travel in Flight's descriptors, tickets and actions as protobuf's Any.

Source: FlightSql.proto of Apache Arrow (names, numbers and types of the fields).
"""

from __future__ import annotations

from google.protobuf import any_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessages

from tureen.errors import TureenError

PACKAGE = "arrow.flight.protocol.sql"
_URL = f"type.googleapis.com/{PACKAGE}."

_STRING, _BYTES = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES
_BOOL, _INT64, _UINT32 = (
    FieldDescriptorProto.TYPE_BOOL,
    FieldDescriptorProto.TYPE_INT64,
    FieldDescriptorProto.TYPE_UINT32,
)
_TEXT = (("query", _STRING), ("transaction_id", _BYTES))
_HANDLE = (("prepared_statement_handle", _BYTES),)
_TABLE = (("catalog", _STRING), ("db_schema", _STRING), ("table", _STRING))
_FIELDS: dict[str, tuple[tuple[str, int], ...]] = {
    "CommandStatementQuery": _TEXT,
    "CommandStatementUpdate": _TEXT,
    "CommandPreparedStatementQuery": _HANDLE,
    "CommandPreparedStatementUpdate": _HANDLE,
    "CommandGetSqlInfo": (("info", _UINT32),),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": (("catalog", _STRING), ("db_schema_filter_pattern", _STRING)),
    "CommandGetTables": (
        ("catalog", _STRING),
        ("db_schema_filter_pattern", _STRING),
        ("table_name_filter_pattern", _STRING),
        ("table_types", _STRING),
        ("include_schema", _BOOL),
    ),
    "CommandGetTableTypes": (),
    "CommandGetPrimaryKeys": _TABLE,
    "CommandGetImportedKeys": _TABLE,
    "CommandGetExportedKeys": _TABLE,
    "TicketStatementQuery": (("statement_handle", _BYTES),),
    "ActionCreatePreparedStatementRequest": _TEXT,
    "ActionCreatePreparedStatementResult": (
        *_HANDLE,
        ("dataset_schema", _BYTES),
        ("parameter_schema", _BYTES),
    ),
    "ActionClosePreparedStatementRequest": _HANDLE,
    "DoPutUpdateResult": (("record_count", _INT64),),
    "DoPutPreparedStatementResult": _HANDLE,
}
"""The fields of each message by their numbers, from 1."""
_REPEATED = ("info", "table_types")


def _file() -> FileDescriptorProto:
    """As proto2 has them, where it is seen whether a field was given."""
    messages = []
    for name, fields in _FIELDS.items():
        made = DescriptorProto(name=name)
        for number, (field, type_) in enumerate(fields, 1):
            repeated = field in _REPEATED
            label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            made.field.add(name=field, number=number, type=type_, label=label)
        messages.append(made)
    return FileDescriptorProto(
        name="tureen_flight_sql.proto", package=PACKAGE, syntax="proto2", message_type=messages
    )


_CLASSES = GetMessages([_file()], DescriptorPool())


class BadMessage(TureenError):
    """What came is no message of Flight SQL, or one that is not known here."""

    code = "protocol_violation"


def unpacked(data: bytes) -> tuple[str, Message]:
    """The name and the message of an Any. Raises BadMessage."""
    try:
        found = any_pb2.Any.FromString(data)
        name = found.type_url.removeprefix(_URL)
        if name not in _FIELDS:
            raise BadMessage(
                f"{found.type_url or 'this'} is not understood",
                hint="ask by Flight SQL: a query, a prepared statement, or its catalogue",
            )
        return name, _CLASSES[f"{PACKAGE}.{name}"].FromString(found.value)
    except DecodeError:
        raise BadMessage("this is no message of Flight SQL") from None


def message(name: str, **fields: object) -> bytes:
    """A message, by itself."""
    return _CLASSES[f"{PACKAGE}.{name}"](**fields).SerializeToString()


def packed(name: str, **fields: object) -> bytes:
    """A message in an Any."""
    return any_pb2.Any(type_url=_URL + name, value=message(name, **fields)).SerializeToString()
