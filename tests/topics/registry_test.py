"""Schemas and their ids; a registry that is away, or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest

from tests.registry import TestRegistry, container, registry
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
