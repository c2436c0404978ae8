"""Schemas and their ids; a registry that is away, or refuses."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from tests.registry import TestRegistry, container, registry
from topics.formats.protobuf_schema import message_named, parse_schema
from topics.registry import RegistrySettings, SchemaKind
from topics.registry_client import Registry
from topics.results_schema import ResultSchemas
from tureen.errors import RegistryUnavailable, SchemaRefused, SettingsError

TEXT = '{"type":"string"}'


@pytest.fixture
def here() -> Iterator[TestRegistry]:
    with registry() as one:
        yield one


def test_a_schema_has_one_id(here: TestRegistry) -> None:
    one = Registry(RegistrySettings(here.url))
    first = one.id_of("a-key", TEXT, "AVRO")
    assert one.id_of("a-key", TEXT, "AVRO") == first
    assert one.id_of("a-value", '{"type":"long"}', "AVRO") != first
    assert Registry(RegistrySettings(here.url)).id_of("a-key", TEXT, "AVRO") == first
    assert here.subjects() == {"a-key", "a-value"}


@pytest.mark.parametrize("rubbish", [b"<html>", b"{}", b'{"id": "x"}', b"[1]", b'{"id": -1}', b"null"])
def test_an_answer_without_an_id_is_none(here: TestRegistry, rubbish: bytes) -> None:
    one = Registry(RegistrySettings(here.url))
    here.rubbish = rubbish
    for _ in range(2):
        with pytest.raises(RegistryUnavailable):
            one.id_of("a-key", TEXT, "AVRO")
    here.rubbish = None
    assert one.id_of("a-key", TEXT, "AVRO") == Registry(RegistrySettings(here.url)).id_of(
        "a-key", TEXT, "AVRO"
    )


def test_what_is_known_needs_no_registry(here: TestRegistry) -> None:
    one = Registry(RegistrySettings(here.url, timeout_s=1.0))
    first = one.id_of("a", TEXT, "AVRO")
    here.stop()
    assert one.id_of("a", TEXT, "AVRO") == first
    with pytest.raises(RegistryUnavailable, match="does not answer") as away:
        one.id_of("b", TEXT, "AVRO")
    assert away.value.hint is not None
    here.start()
    assert one.id_of("b", TEXT, "AVRO") > 0


def test_a_schema_that_may_not_follow_is_refused(here: TestRegistry) -> None:
    here.refused.add("a")
    with pytest.raises(SchemaRefused, match="incompatible with an earlier schema") as refused:
        Registry(RegistrySettings(here.url)).id_of("a", TEXT, "AVRO")
    assert refused.value.subject == "a"


def test_addresses() -> None:
    assert Registry(RegistrySettings("mock://here")).id_of("a", TEXT, "AVRO") > 0
    with pytest.raises(SettingsError):
        Registry(RegistrySettings("nowhere"))


def test_a_real_registry_takes_every_schema(kafka: str, service_id: str) -> None:
    with container(kafka) as url:
        if url is None:
            pytest.skip("no Docker engine answers here")
        one = Registry(RegistrySettings(url))
        columns = pa.schema(
            [("a b", pa.int64()), ("t", pa.timestamp("ms")), ("l", pa.list_(pa.decimal128(9, 2)))]
        )
        for form, encoding in product(("upsert", "debezium", "diff"), ("avro", "json_schema")):
            topic = f"{service_id}.{form}.{encoding}"
            key, value = ResultSchemas(topic, columns, (0,), form).texts(encoding)
            kind: SchemaKind = "AVRO" if encoding == "avro" else "JSON"
            assert one.id_of(f"{topic}-key", key, kind) != one.id_of(f"{topic}-value", value, kind)
        with pytest.raises(SchemaRefused):
            one.id_of(f"{service_id}.upsert.avro-value", TEXT, "AVRO")


def test_readers_of_the_client_library_are_answered(here: TestRegistry) -> None:
    here.put("inner.proto", 'syntax = "proto3"; message Inner { uint64 n = 1; }', "PROTOBUF")
    text = 'syntax = "proto3"; import "inner.proto"; message Outer { Inner inner = 1; string s = 2; }'
    number = here.put("outer-value", text, "PROTOBUF", ["inner.proto"])
    client = SchemaRegistryClient({"url": here.url})
    assert client.get_versions("outer-value") == [1]
    latest = client.get_latest_version("outer-value")
    assert (latest.subject, latest.version, latest.schema_id) == ("outer-value", 1, number)
    assert client.lookup_schema("outer-value", latest.schema).schema_id == number
    client = SchemaRegistryClient({"url": here.url})  # the other one has schemas as text
    found = client.get_version("outer-value", 1, fmt="serialized").schema
    file = FileDescriptorProto.FromString(base64.b64decode(str(found.schema_str)))
    assert [one.name for one in file.message_type] == ["Outer"]
    assert list(file.dependency) == ["inner.proto"]
    message = message_named(parse_schema(text, {"inner.proto": here.client.get_schema(1).schema_str}), None)
    class_ = GetMessageClass(message)
    read = ProtobufDeserializer(class_, {"use.deprecated.format": False}, client)
    data = (
        b"\0" + number.to_bytes(4, "big") + b"\0" + class_(s="a", inner={"n": 2**64 - 1}).SerializeToString()
    )
    assert read(data, SerializationContext("outer", MessageField.VALUE)) == class_(
        s="a", inner={"n": 2**64 - 1}
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/subjects/none/versions/latest", 404),
        ("/subjects/none/versions", 404),
        ("/subjects/a/versions/x", 422),
    ],
)
def test_what_the_registry_has_not_is_told(here: TestRegistry, path: str, status: int) -> None:
    here.put("a", TEXT)
    assert here.reply("GET", path, b"", None)[0] == status
    assert here.reply("POST", "/subjects/a", b'{"schema": "\\"long\\""}', None)[0] == 404
    assert here.reply("POST", "/subjects/a", b"[]", None)[0] == 422


def test_the_registry_tells_how_it_is_run() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "topics.registry_server", "--help"], capture_output=True, text=True, check=True
    )
    assert "port" in told.stdout
    assert not told.stderr
