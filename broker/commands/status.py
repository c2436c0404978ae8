"""``tureen status``: Kafka, the broker, its shards, streams and rates, in tables or JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from tureen import command_options, console
from tureen.commands.sources import show_archived, show_notes
from tureen.errors import BrokerUnavailable
from tureen.memory_text import memory_line

TIMEOUT_S = 5.0


PROTOCOLS = {"http": "HTTP", "postgresql": "PostgreSQL", "flight-sql": "Flight SQL"}


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Of the embedded Kafka; default: TUREEN_DATA_DIR, else the user's data directory.",
)
@command_options.broker_options
def status(data_dir: Path | None, broker: command_options.Broker) -> None:
    """Kafka, the broker, its shards, streams and rates.

    Exit code 3 when the broker does not answer, 1 when it is not ready.
    """
    facts: dict[str, Any] = {"kafka": kafka_facts(data_dir), "url": broker.url}
    try:
        facts["broker"] = fetch(broker.url, broker.token)
    except BrokerUnavailable as away:
        facts["broker"] = None
        if broker.as_json:
            console.show_json(facts | {"error": away.as_dict()})
        else:
            _show_kafka(facts["kafka"], "embedded, not running (tureen up)", " (tureen doctor tries it)")
            console.show_error(away)
        raise SystemExit(3) from None
    if broker.as_json:
        console.show_json(facts)
    else:
        _show(facts)
    raise SystemExit(0 if facts["broker"]["readiness"]["ready"] else 1)


def kafka_facts(data_dir: Path | None) -> dict[str, Any]:
    """Where Kafka is configured to be, or how the embedded node is."""
    configured = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS")
    if configured:
        return {"embedded": False, "bootstrap": configured}
    try:
        from topics.commands import status_of_kafka
    except ModuleNotFoundError:  # the client alone is installed
        return {"embedded": False, "bootstrap": None}
    return {"embedded": True, **status_of_kafka(data_dir)}


def fetch(url: str, token: str | None) -> dict[str, Any]:
    """``GET /status``. Raises BrokerUnavailable."""
    import httpx

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        reply = httpx.get(f"{url.rstrip('/')}/status", headers=headers, timeout=TIMEOUT_S)
        if reply.status_code == 401:
            raise BrokerUnavailable(
                f"the broker at {url} requires a token", hint="--token or TUREEN_HTTP_TOKEN"
            )
        reply.raise_for_status()
        facts: dict[str, Any] = reply.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise BrokerUnavailable(
            f"no broker answers at {url}: {error}",
            hint="start `tureen serve` and wait for its Ready, or give the address with --url or TUREEN_URL",
        ) from None
    return facts


def _show_kafka(kafka: dict[str, Any], otherwise: str, configured: str = "") -> None:
    """``otherwise``: what to show else: the broker may use the node of another data directory.

    configured: added to an address that is only configured, not asked.
    """
    if kafka["embedded"] and kafka["running"]:
        told = f"embedded, at {kafka['bootstrap']} (process {kafka['pid']})"
    else:
        given = not kafka["embedded"] and kafka["bootstrap"]
        told = kafka["bootstrap"] + configured if given else otherwise
    console.out().print(f"Kafka   {told}")


def _show(facts: dict[str, Any]) -> None:
    broker = facts["broker"]
    out = console.out()
    _show_kafka(facts["kafka"], broker["kafka"])
    readiness = broker["readiness"]
    state = "[green]ready[/]" if readiness["ready"] else "[red]not ready[/]"
    out.print(
        f"Broker  {facts['url']} {state}, up {broker['uptime_s']:,.0f} s, service {broker['service_id']}, "
        f"Kafka at {broker['kafka']}",
        soft_wrap=True,
    )
    for door in broker.get("doors") or ():
        tls, token = "TLS" if door["tls"] else "no TLS", "a token" if door["token"] else "no token"
        name = PROTOCOLS.get(door["protocol"], door["protocol"])
        out.print(
            f"Door    {name} at {door['host']}:{door['port']}, {tls}, {token}, "
            f"{door['connections']:,} connection{'s' * (door['connections'] != 1)}",
            markup=False,
            soft_wrap=True,
        )
    for reason in readiness["reasons"] + readiness["degraded"]:
        where = f"stream {reason['stream']}: " if "stream" in reason else ""
        out.print(f"        {where}{reason['message']}", style="red", markup=False, soft_wrap=True)
        if reason.get("hint"):
            out.print(f"        hint: {reason['hint']}", style="cyan", markup=False)
    queries = broker["queries"]
    out.print(
        f"Queries {queries['RUNNING']:,} running, {queries['PAUSED']:,} paused, "
        f"{queries['PENDING']:,} pending, {queries['ERROR']:,} refused"
    )
    memory = broker.get("memory")
    if memory is not None:
        style = {"normal": "green", "refuse": "yellow"}.get(memory["level"], "red")
        out.print(f"Memory  [{style}]{memory['level']}[/], {memory_line(memory)}", soft_wrap=True)
        if memory.get("spilled_refused") is not None:
            refused = memory["spilled_refused"]
            out.print(f"        rows stay in memory: {refused['message']}", style="red", markup=False)
    archive = broker.get("archive")
    if archive is not None:
        states = {True: "[green]readable[/]", False: "[red]cannot be read[/]", None: "not checked yet"}
        out.print(f"Archive {escape(archive['root'])} {states[archive['reachable']]}", soft_wrap=True)
        if archive["error"] is not None:
            out.print(f"        {archive['error']['message']}", style="red", markup=False, soft_wrap=True)
    rates = broker["rates"]
    if rates:
        out.print(
            f"Rates   {rates['records']:,.0f} records/s, {rates['entered']:,.0f} rows entered/s, "
            f"{rates['late']:,.0f} late/s, {rates['dead_letters']:,.0f} dead letters/s, "
            f"{rates['snapshots']:,.1f} snapshots/s",
            soft_wrap=True,
        )
    if broker["sources"]:
        _show_sources(broker["sources"])
    show_notes(broker["sources"])
    show_archived(broker["sources"])
    if broker["shards"]:
        _show_shards(broker["shards"])


def _show_sources(sources: list[dict[str, Any]]) -> None:
    console.show_table(
        ["stream", "state", "queries", "rows", "late", "dead", "NOW"],
        [
            (
                source["name"],
                source["state"],
                f"{source['queries']:,}",
                f"{source['rows']:,}",
                f"{source['late']:,}",
                f"{source['dead_letters']:,}",
                console.instant_of_ms(source["now_ms"]) + (" behind" if source["lagging"] else ""),
            )
            for source in sources
        ],
        [False, False, True, True, True, True, False],
    )


def _show_shards(shards: list[dict[str, Any]]) -> None:
    console.show_table(
        ["shard", "state", "position", "saved", "queries", "steps", "commits", "streams"],
        [
            (
                str(shard["shard"]),
                shard["state"],
                shard["position"],
                shard["saved_position"] or "-",
                f"{shard['queries']:,}",
                f"{shard['steps']:,}",
                f"{shard['transactions']:,}",
                ", ".join(shard["sources"]) or "-",
            )
            for shard in shards
        ],
        [True, False, False, False, True, True, True, False],
    )
