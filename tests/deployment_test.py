"""docker-compose.yml and the Dockerfile, read as their engine would, where there is no engine to ask.

With the compose plugin at hand continuous integration asks that too (.ci/run). What is checked here beyond
syntax is what the two files promise: nothing published past loopback, no root, versions as in pyproject.toml.
"""

import fnmatch
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.base.settings import Settings
from tests.registry import IMAGE as REGISTRY_IMAGE
from topics.settings import ENVIRONMENT_PREFIX

ROOT = Path(__file__).parents[1]

# Of the compose specification, what a service of ours uses or is likely to.
SERVICE_KEYS = {
    "build",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "network_mode",
    "ports",
    "profiles",
    "restart",
    "stop_grace_period",
    "user",
    "volumes",
}
HEALTHCHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period"}
DURATION = re.compile(r"(\d+(ms|s|m|h))+")
INSTRUCTIONS = {
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}


class NoRepeats(yaml.SafeLoader):
    """Refuses a mapping that names a key twice, as compose does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key twice among {keys}, {node.start_mark}"
        return super().construct_mapping(node, deep)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"), NoRepeats)
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def dockerfile() -> list[tuple[str, str]]:
    """Instructions with their arguments; comments dropped, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_compose_has_only_keys_that_compose_knows(compose: dict[str, Any]) -> None:
    assert set(compose) <= {"name", "services", "volumes", "networks"}
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert "image" in service or "build" in service, name
        assert service.get("restart", "no") in {"no", "always", "on-failure", "unless-stopped"}, name


def test_compose_environment_is_scalars(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for key, value in service.get("environment", {}).items():
            # YAML's true and false are refused by compose: they must be quoted.
            assert isinstance(value, str | int | float), (name, key)
            assert not isinstance(value, bool), (name, key)


def test_compose_waits_for_services_that_tell_their_health(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, wish in service.get("depends_on", {}).items():
            assert other in services, name
            assert wish["condition"] in {"service_started", "service_healthy"}, name
            if wish["condition"] == "service_healthy":
                assert "healthcheck" in services[other], (name, other)


def test_compose_health_checks_are_well_formed(compose: dict[str, Any]) -> None:
    checks = [service["healthcheck"] for service in compose["services"].values() if "healthcheck" in service]
    assert checks
    for check in checks:
        assert set(check) <= HEALTHCHECK_KEYS
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert all(isinstance(word, str) for word in check["test"])
        assert all(
            DURATION.fullmatch(check[key]) for key in ("interval", "timeout", "start_period") if key in check
        )
        assert isinstance(check["retries"], int)
    assert "/readycheck" in " ".join(compose["services"]["broker"]["healthcheck"]["test"])


def test_compose_volumes_are_declared(compose: dict[str, Any]) -> None:
    named = {
        volume.partition(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", [])
        if not volume.startswith((".", "/", "~"))
    }
    assert named == set(compose["volumes"])


def test_nothing_is_published_past_loopback(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), name
        assert not ("ports" in service and service.get("network_mode") == "host"), name


def test_broker_is_configured_by_settings_that_it_has(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = compose["services"]["broker"]["environment"]
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
        assert (
            key.startswith(ENVIRONMENT_PREFIX) or key.removeprefix("TUREEN_").lower() in Settings.model_fields
        )
    settings = Settings()
    assert settings.http_host == "127.0.0.1"
    assert f"{settings.url}/readycheck" in compose["services"]["broker"]["healthcheck"]["test"][-1]
    kafka = compose["services"]["kafka"]
    bootstrap = settings.kafka()["bootstrap.servers"]
    listeners = dict(
        listener.split("://", 1) for listener in kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    )
    assert bootstrap == listeners["HOST"]
    assert f"{bootstrap}:{bootstrap.rpartition(':')[2]}" in kafka["ports"]


def test_the_schema_registry_is_where_the_broker_looks_for_it(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in compose["services"]["broker"]["environment"].items():
        monkeypatch.setenv(key, value)
    registry = compose["services"]["schema-registry"]
    port = Settings().schema_registry_url.removeprefix("http://127.0.0.1:")
    _, _, inside = registry["environment"]["SCHEMA_REGISTRY_LISTENERS"].rpartition(":")
    assert registry["ports"] == [f"127.0.0.1:{port}:{inside}"]
    assert f":{inside}/" in registry["healthcheck"]["test"][-1]
    listeners = compose["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    address = registry["environment"]["SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"].removeprefix(
        "PLAINTEXT://"
    )
    assert f"INSIDE://{address}" in listeners.split(",")
    assert "schema-registry" in compose["services"]["broker"]["depends_on"]
    assert registry["image"] == REGISTRY_IMAGE


def test_images_are_pinned_and_spark_is_pysparks_version(
    compose: dict[str, Any], project: dict[str, Any]
) -> None:
    for name, service in compose["services"].items():
        tag = service["image"].rpartition(":")[2]
        assert re.fullmatch(r"\d+\.\d+\.\d+", tag), name
    [pyspark] = project["project"]["optional-dependencies"]["spark"]
    version = pyspark.removeprefix("pyspark==")
    assert compose["services"]["spark"]["image"] == f"apache/spark:{version}"
    assert compose["services"]["spark-worker"]["image"] == f"apache/spark:{version}"
    assert compose["services"]["broker"]["image"] == f"tureen:{project['project']['version']}"


def test_dockerfile_is_well_formed(dockerfile: list[tuple[str, str]]) -> None:
    names = [name for name, _ in dockerfile]
    assert names[0] == "FROM"
    assert set(names) <= INSTRUCTIONS
    assert all(arguments for _, arguments in dockerfile)
    for name, arguments in dockerfile:
        if name in {"CMD", "ENTRYPOINT"}:
            assert all(isinstance(word, str) for word in json.loads(arguments))


def test_dockerfile_copies_from_named_stages_and_from_what_is_sent(dockerfile: list[tuple[str, str]]) -> None:
    stages = set()
    for name, arguments in dockerfile:
        if name == "FROM":
            stages.update(re.findall(r" AS (\S+)$", arguments))
        elif name == "COPY":
            stage = re.match(r"--from=(\S+) ", arguments)
            if stage:
                assert stage[1] in stages
                continue
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert is_sent(source), f"{source} is kept back by .dockerignore"


def test_dockerfile_installs_every_package_that_is_shipped(
    dockerfile: list[tuple[str, str]], project: dict[str, Any]
) -> None:
    copied = {arguments.split()[0] for name, arguments in dockerfile if name == "COPY"}
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= copied


def test_image_runs_without_root_and_installs_by_hash(dockerfile: list[tuple[str, str]]) -> None:
    last_stage = dockerfile[max(at for at, (name, _) in enumerate(dockerfile) if name == "FROM") :]
    users = [arguments for name, arguments in last_stage if name == "USER"]
    assert users
    assert users[-1] not in {"root", "0"}
    for name, arguments in dockerfile:
        if name == "RUN":
            assert arguments.count("pip install") == arguments.count("--require-hashes") + arguments.count(
                "--no-deps"
            )


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a path through; the last pattern that matches it decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and fnmatch.fnmatch(path, pattern.removeprefix("!")):
            sent = pattern.startswith("!")
    return sent
