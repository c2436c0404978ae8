"""What a client says over HTTP, and says again: driven step by step, without a connection."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

import tureen
from tureen import calls
from tureen.errors import (
    BeingPrepared,
    BrokerUnavailable,
    InternalError,
    SyntaxRefused,
    UnknownEntity,
    UnknownQuery,
    UnknownSource,
    ValueRefused,
)
from tureen.exchange import ATTEMPTS, Pause, Request, Talk, steps
from tureen.protocol import new_handle
from tureen.settling import registered
from tureen.transport import Publication

ADDRESS = "http://broker:1"
REQUEST = httpx.Request("GET", f"{ADDRESS}/queries/secret")

Reply = httpx.Response | httpx.HTTPError


def answered(message: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=message, request=REQUEST)


def carried_out(talk: Talk[Any], replies: Sequence[Reply]) -> tuple[Any, list[Request[Any] | Pause]]:
    """What a talk returns, and what it wanted done until then."""
    doing = steps(talk, ADDRESS)
    left = list(replies)
    done: list[Request[Any] | Pause] = []
    try:
        step = next(doing)
        while True:
            done.append(step)
            if isinstance(step, Pause):
                step = doing.send(None)
            elif isinstance(reply := left.pop(0), httpx.HTTPError):
                step = doing.throw(reply)
            else:
                step = doing.send(reply)
    except StopIteration as end:
        assert not left
        return end.value, done


def test_a_read_is_made_again_when_the_connection_breaks_or_the_broker_starts() -> None:
    replies = [
        httpx.ConnectError("refused"),
        httpx.ReadError("cut"),
        answered({}, 503),
        answered({"rate": 1}),
    ]

    figures, done = carried_out(calls.service(), replies)

    assert figures == {"rate": 1}
    assert [step.seconds for step in done if isinstance(step, Pause)] == [0.15, 0.3, 0.6]
    assert {step.path for step in done if isinstance(step, Request)} == {"/status"}


def test_it_is_given_up_in_the_end() -> None:
    with pytest.raises(BrokerUnavailable, match=f"no broker answers at {ADDRESS}: refused"):
        carried_out(calls.service(), [httpx.ConnectError("refused")] * ATTEMPTS)


@pytest.mark.parametrize(
    "talk", [calls.create("CREATE ...", 1), calls.drop("s", False, 1), calls.execute("SHOW QUERIES", 1)]
)
def test_what_could_count_twice_is_not_sent_again_once_it_may_have_arrived(talk: Talk[Any]) -> None:
    with pytest.raises(BrokerUnavailable):
        carried_out(talk, [httpx.ConnectError("refused"), httpx.ReadError("cut")])


def test_a_refusal_is_the_error_that_it_names() -> None:
    with pytest.raises(SyntaxRefused, match="no statement"):
        carried_out(calls.execute("x", 1), [answered({"code": "syntax", "message": "no statement"}, 400)])
    with pytest.raises(UnknownQuery):
        carried_out(calls.status("secret"), [httpx.Response(404, text="gone", request=REQUEST)])
    with pytest.raises(BrokerUnavailable, match="HTTP 500"):
        carried_out(calls.status("secret"), [httpx.Response(500, text="oh", request=REQUEST)])
    with pytest.raises(BrokerUnavailable, match="not JSON"):
        carried_out(calls.status("secret"), [httpx.Response(200, text="<html>", request=REQUEST)])


def test_a_refused_registration_is_a_status_but_an_absent_broker_is_an_error() -> None:
    one = Publication(tureen.new_handle(), "nonsense")

    (status,), _ = carried_out(
        calls.register([one], 1), [answered({"code": "syntax", "message": "no statement"}, 400)]
    )

    assert (status.state, type(status.error)) == ("ERROR", SyntaxRefused)
    with pytest.raises(BrokerUnavailable):
        carried_out(calls.register([one], 1), [httpx.ReadTimeout("late")])


def test_registrations_that_were_not_all_answered_are_no_success() -> None:
    two = [Publication(tureen.new_handle(), "SELECT 1")] * 2
    with pytest.raises(BrokerUnavailable, match="1 of 2"):
        carried_out(calls.register(two, 1), [answered({"state": "RUNNING"})])


def test_lists_are_read_page_by_page() -> None:
    pages = [
        answered({"queries": [{"query_id": "a"}, {"query_id": "b"}], "next": "b"}),
        answered({"queries": [{"query_id": "c"}], "next": None}),
    ]

    found, done = carried_out(calls.queries(), pages)

    assert [one.query_id for one in found] == ["a", "b", "c"]
    assert [step.params["after"] for step in done if isinstance(step, Request)] == ["", "b"]


def test_handles_and_names_are_one_part_of_an_address_whatever_is_in_them() -> None:
    for talk, path in [
        (calls.status("a b?c"), "/queries/a%20b%3Fc"),
        (calls.drop("a/b?c", False, 1), "/sources/a%2Fb%3Fc"),
    ]:
        step = next(steps(talk, ADDRESS))
        assert isinstance(step, Request)
        assert step.path == path


@pytest.mark.parametrize("handle", ["", ".", "..", "../../status", "a/b"])
def test_a_handle_that_would_be_another_address_is_an_unknown_one(handle: str) -> None:
    for asked in (calls.status, calls.unregister, calls.plan_file):
        with pytest.raises(UnknownQuery, match="there is no query with this handle"):
            asked(handle)


@pytest.mark.parametrize("id_", ["", "../status", "a//b"])
def test_an_entity_that_would_be_another_address_is_an_unknown_one(id_: str) -> None:
    with pytest.raises(UnknownEntity):
        calls.entity(id_)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")], ids=str)
def test_what_json_cannot_say_is_refused_before_it_is_sent(weight: float) -> None:
    step = next(steps(calls.change("h", weight=weight), ADDRESS))
    assert isinstance(step, Request)
    with pytest.raises(ValueRefused, match="JSON"):
        step.arguments()


@pytest.mark.parametrize("pair", [(tureen.Client, tureen.AsyncClient), (tureen.Query, tureen.AsyncQuery)])
def test_the_asynchronous_client_has_the_same_calls(pair: tuple[type, type]) -> None:
    def parameters(kind: type) -> dict[str, list[str]]:
        return {
            name: [str(one).partition(":")[0] for one in inspect.signature(member).parameters.values()]
            for name, member in vars(kind).items()
            if inspect.isfunction(member) and not name.startswith("_")
        }

    blocking, awaited = map(parameters, pair)
    assert blocking == awaited
    assert blocking


def test_a_registration_that_is_prepared_is_waited_for_and_a_missing_stream_is_not() -> None:
    prepared = {"query_id": "a", "state": "PENDING", "error": BeingPrepared(0.5).as_dict(), "output": "o"}
    missing = {"query_id": "b", "state": "PENDING", "error": UnknownSource("s").as_dict()}
    lines = httpx.Response(200, content="\n".join(map(json.dumps, [prepared, missing])), request=REQUEST)
    publications = [Publication(new_handle(), f"SELECT {number}") for number in range(2)]
    replies = [lines, answered(prepared), answered({"query_id": "a", "state": "RUNNING"})]
    found, done = carried_out(registered(publications, 60.0), replies)
    assert [one.state for one in found] == ["RUNNING", "PENDING"]
    assert [one.error and one.error.code for one in found] == [None, "unknown_source"]
    assert found[0].facts["output"] == "o"
    assert [isinstance(step, Pause) for step in done] == [False, True, False, True, False]


def test_a_registration_is_waited_for_no_longer_than_asked_and_not_past_a_refusal() -> None:
    prepared = {"query_id": "a", "state": "PENDING", "error": BeingPrepared(0.5).as_dict()}
    one = [Publication(new_handle(), "SELECT 1")]
    found, done = carried_out(registered(one, 0.0), [answered(prepared, 202)])
    assert (found[0].state, len(done)) == ("PENDING", 1)
    gone = answered({"code": "unknown_query", "message": "gone"}, 404)
    found, _ = carried_out(registered(one, 60.0), [answered(prepared, 202), gone])
    assert found[0].state == "PENDING"
    failed = answered({"query_id": "a", "state": "ERROR", "error": InternalError("1", "").as_dict()})
    found, _ = carried_out(registered(one, 60.0), [answered(prepared, 202), failed])
    assert (found[0].state, found[0].error and found[0].error.code) == ("ERROR", "internal_error")
