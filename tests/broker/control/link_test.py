"""A worker that fails at one command of many, one that is away, and one that says that it is not ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from broker.control import link
from broker.control.link import CallFailed, Link
from topics.control_records import Command

Answer = Callable[[list[Command]], tuple[int, list[dict[str, Any]]]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "RETRY_S", 0.001)


def said(tmp_path: Path, answer: Answer, *commands: Command) -> list[dict[str, Any]]:
    """The outcomes of commands that are handed to a worker that answers so."""

    async def served(request: web.Request) -> web.Response:
        status, outcomes = answer((await request.json())["commands"])
        return web.json_response({"outcomes": outcomes}, status=status)

    async def main() -> list[dict[str, Any]]:
        app = web.Application()
        app.router.add_post("/internal/commands", served)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, str(tmp_path / "worker.sock")).start()
        one = Link(str(tmp_path / "worker.sock"), "secret")
        try:
            return [dict(outcome) for outcome in await one.commands(commands)]
        finally:
            await one.close()
            await runner.cleanup()

    return asyncio.run(main())


def register(name: str, **options: Any) -> Command:
    return {"kind": "register", "name": name, "sql": "SELECT 1", "options": options, "origin": (0, 7)}


def failing_at(name: str, told: list[Command]) -> Answer:
    """Fails at a registration under this name, and tells the others."""

    def answer(commands: list[Command]) -> tuple[int, list[dict[str, Any]]]:
        if any((one["kind"], one["name"]) == ("register", name) for one in commands):
            return 500, []
        told.extend(commands)
        states = ["ERROR" if one["kind"] == "refuse" else "RUNNING" for one in commands]
        errors = [one.get("error") for one in commands]
        return 200, [{"state": state, "error": error} for state, error in zip(states, errors, strict=True)]

    return answer


def test_a_command_at_which_the_worker_fails_holds_up_no_other(tmp_path: Path) -> None:
    told: list[Command] = []
    outcomes = said(tmp_path, failing_at("b", told), *(register(name) for name in "abc"))
    assert [outcome["state"] for outcome in outcomes] == ["RUNNING", "ERROR", "RUNNING"]
    assert outcomes[1]["error"]["code"] == "command_failed"
    assert [(one["kind"], one["name"], tuple(one["origin"])) for one in told] == [
        ("register", "a", (0, 7)),
        ("refuse", "b", (0, 7)),
        ("register", "c", (0, 7)),
    ]


def test_a_command_that_cannot_be_written_holds_up_no_other(tmp_path: Path) -> None:
    told: list[Command] = []
    outcomes = said(tmp_path, failing_at("", told), register("a"), register("b", mine=object()))
    assert [outcome["state"] for outcome in outcomes] == ["RUNNING", "ERROR"]


def test_a_removal_at_which_the_worker_fails_is_an_error(tmp_path: Path) -> None:
    (outcome,) = said(tmp_path, lambda _: (500, []), {"kind": "unregister", "name": "a"})
    assert (outcome["state"], outcome["error"]["code"]) == ("ERROR", "command_failed")


def test_a_worker_that_cannot_yet_is_waited_for(tmp_path: Path) -> None:
    answers = iter([(503, [])] * (2 * link.FAILURES_MAX) + [(200, [{"state": "RUNNING"}])])
    assert said(tmp_path, lambda _: next(answers), register("a")) == [{"state": "RUNNING"}]


def test_a_call_at_which_the_worker_fails_is_given_up(tmp_path: Path) -> None:
    async def main() -> None:
        async def served(_: web.Request) -> web.Response:
            return web.Response(status=500)

        app = web.Application()
        app.router.add_get("/internal/hello", served)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, str(tmp_path / "worker.sock")).start()
        one = Link(str(tmp_path / "worker.sock"), "secret")
        try:
            with pytest.raises(CallFailed):
                await one.call("GET", "/internal/hello")
        finally:
            await one.close()
            await runner.cleanup()

    asyncio.run(main())
