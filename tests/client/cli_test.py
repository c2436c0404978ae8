"""The command line, against a real broker."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result

import tureen
from tests.client.cli import tureen_
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tureen.console import show_table

COMMANDS = {
    "completion", "demo", "doctor", "down", "explain", "match", "pause", "queries", "register", "resume",
    "serve", "snapshot", "sources", "sql", "status", "unregister", "up", "watch",
}  # fmt: skip


def test_help_lists_every_command_with_a_line() -> None:
    lines = tureen_("--help").stdout.split("Commands:\n")[1].splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines}
    assert found.keys() >= COMMANDS
    assert all(found[name] for name in COMMANDS), found


def test_help_imports_no_command() -> None:
    program = (
        "import sys; from tureen.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit:\n"
        "  print({'httpx', 'rich', 'pyarrow', 'confluent_kafka'} & set(sys.modules) or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "none"


def test_a_missing_server_package_is_said_in_one_line() -> None:
    program = (
        "import sys\n"
        "sys.modules['pydantic_settings'] = sys.modules['topics'] = sys.modules['broker'] = None\n"
        "from tureen.cli import main; main(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "pip install '.[server,demo]'" in done.stderr


@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (["serve"], "server"),
        (["up"], "server"),
        (["status"], None),
        (["doctor"], None),
        (["records", "t"], "server"),
        (["late"], "server"),
        (["spark", "jobs"], "server,spark"),
        (["spark", "run"], "server,spark"),
        (["spark", "run", "archive", "--help"], "server,spark"),
        (["demo-spark"], "server,demo-spark"),
    ],
)
def test_commands_without_their_packages_name_the_extra(args: list[str], extra: str | None) -> None:
    """As after `pip install .`, without any extra."""
    missing = "numpy numba pydantic pydantic_settings platformdirs pyspark sqlglot structlog orjson faust"
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({missing.split()!r}))\n"
        f"from tureen.cli import main; main({args!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    if extra is not None:
        assert done.returncode == 1
        assert f"pip install '.[{extra}]'" in done.stderr


def test_a_mistyped_command_gets_a_suggestion() -> None:
    result = tureen_("snapshto")
    assert result.exit_code == 2
    assert "Did you mean 'snapshot'?" in result.stderr


def test_nobody_listening_is_exit_code_3() -> None:
    result = tureen_("queries", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 3
    assert "tureen serve" in result.stderr
    result = tureen_("queries", "--url", "http://127.0.0.1:1", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["error"]["code"] == "broker_unavailable"


def test_a_setting_that_kafka_does_not_know_is_told_without_a_traceback() -> None:
    result = tureen_("register", "--by-topic", "--kafka", "nonsense.setting=1", "SELECT 1")
    assert result.exit_code == 1
    assert "nonsense.setting" in result.stderr


def test_an_address_without_a_scheme_is_told_how_to_write_it() -> None:
    result = tureen_("queries", "--url", "localhost:8080")
    assert result.exit_code == 3
    assert "'localhost:8080' is not an address" in result.stderr
    assert "http://" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = tureen_("completion", shell)
    assert result.exit_code == 0
    assert "_TUREEN_COMPLETE" in result.stdout


def test_a_session_from_stream_to_snapshot(broker: Broker, tmp_path: Path) -> None:
    name = f"cli_{tureen.new_handle()[:8]}"
    made = tureen_(
        "sql",
        f"CREATE STREAM {name} (city STRING, price DOUBLE, at TIMESTAMP) "
        f"WITH (topic = '{name}', timestamp = 'at', idle_timeout = '100 milliseconds')",
        broker=broker,
    )
    assert (made.exit_code, made.stdout) == (0, ""), made.output
    assert f"stream {name} is ready" in made.stderr

    registered = tureen_("register", f"SELECT city, price FROM {name} WHERE price > 1", broker=broker)
    assert registered.exit_code == 0, registered.output
    handle = registered.stdout.strip()
    assert f"tureen snapshot {handle}" in registered.stderr

    broker.produce(
        name, [{"city": c, "price": p, "at": 1_000 + p} for p, c in enumerate(["Bern", "Ulm", "Rom"])]
    )
    wait_until(
        lambda: tureen_("snapshot", handle, "--format", "ndjson", broker=broker).stdout, what="a row is in"
    )

    piped = tureen_("snapshot", handle, "--format", "csv", broker=broker)
    assert "the answer, NOW 1970-01-01 00:00:01.002 UTC, position " in piped.stderr
    assert piped.stdout.splitlines() == [
        "city,price",
        '"Rom",2.0',
    ]
    answer = json.loads(tureen_("snapshot", handle, "--json", broker=broker).stdout)
    assert answer["rows"] == [["Rom", 2.0]]
    assert {column["name"] for column in answer["columns"]} == {"city", "price"}
    assert answer["now_ms"] == 1_002
    table = tureen_("snapshot", handle, "--format", "table", broker=broker)
    assert "Rom" in table.stdout
    assert "1 row, NOW 1970-01-01 00:00:01.002 UTC" in table.stderr
    file = tmp_path / "answer.arrow"
    assert tureen_("snapshot", handle, "--output", str(file), broker=broker).exit_code == 0
    assert pa.ipc.open_stream(file.read_bytes()).read_all().to_pylist() == [{"city": "Rom", "price": 2.0}]
    early = tureen_("snapshot", handle, "--at", "1970-01-01T00:00:01.001Z", "--format", "csv", broker=broker)
    assert early.stdout == "city,price\n"
    later = tureen_("snapshot", handle, "--at", "2030-01-01T00:00:00Z", broker=broker)
    assert later.exit_code == 1
    assert (
        "the instant 2030-01-01T00:00:00.000Z is after NOW, which is 1970-01-01T00:00:01.002Z" in later.stderr
    )

    once = tureen_("sql", "--json", f"SELECT COUNT(*) AS n FROM {name}", broker=broker)
    assert json.loads(once.stdout)["rows"] == [[3]]
    assert json.loads(once.stdout).keys() == answer.keys()
    assert "handle" not in json.loads(once.stdout)
    listed = json.loads(tureen_("queries", "--json", broker=broker).stdout)
    assert tureen.query_id(handle) in {one["query_id"] for one in listed}
    assert handle not in json.dumps(listed)
    assert tureen.query_id(handle) in tureen_("queries", "--limit", "100000", broker=broker).stdout
    assert name in tureen_("sources", broker=broker).stdout

    assert tureen_("unregister", handle, broker=broker).exit_code == 0
    gone = tureen_("snapshot", handle, "--json", broker=broker)
    assert gone.exit_code == 1
    assert json.loads(gone.stdout)["error"]["code"] == "unknown_query"
    dropped = tureen_("sql", f"DROP STREAM {name}", broker=broker)
    assert dropped.exit_code == 0, dropped.output
    assert f"stream {name} is gone" in dropped.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_likely_mistake_is_told_when_a_query_is_asked_once(
    broker: Broker, trades: str, form: tuple[str, ...]
) -> None:
    told = tureen_("sql", f"SELECT * FROM {trades} WHERE price = NULL", *form, broker=broker)
    assert (told.exit_code, told.stderr.count("IS NULL")) == (0, 1)


def test_a_likely_mistake_is_told_when_a_query_is_registered(broker: Broker, trades: str) -> None:
    given = "register", f"SELECT * FROM {trades} WHERE price = NULL"
    told = tureen_(*given, broker=broker)
    assert (told.exit_code, "IS NULL" in told.stderr) == (0, True)
    (warning,) = json.loads(tureen_(*given, "--json", broker=broker).stdout)["warnings"]
    assert warning["code"] == "null_comparison"


def test_register_tells_the_topic_of_changes(broker: Broker, trades: str) -> None:
    for into, topic in (
        (f" INTO {trades}_out", f"{broker.service_id}.results.{trades}_out"),
        ("", f"{broker.service_id}.results.log"),
    ):
        done = tureen_("register", f"SELECT price FROM {trades} EMIT CHANGES{into}", broker=broker)
        assert f"its changes go to {topic}: tureen watch {done.stdout.strip()}" in done.stderr.replace(
            "\n", " "
        )
        assert tureen_("unregister", done.stdout.strip(), broker=broker).exit_code == 0
    plain = tureen_("register", f"SELECT price FROM {trades}", broker=broker)
    assert "its changes go to" not in plain.stderr
    assert tureen_("unregister", plain.stdout.strip(), broker=broker).exit_code == 0


def test_register_sets_options(broker: Broker, trades: str) -> None:
    text = f"SELECT DISTINCT symbol FROM {trades} [RANGE 1 MINUTE]"
    options = ("--option", "strategy=upa", "--option", "weight = 2")
    registered = tureen_("register", *options, text, broker=broker)
    assert registered.exit_code == 0, registered.output
    handle = registered.stdout.strip()
    listed = json.loads(tureen_("queries", "--extended", "--json", broker=broker).stdout)
    (found,) = [one for one in listed if one["query_id"] == tureen.query_id(handle)]
    assert (found["strategy"], found["weight"]) == ("upa", 2)
    assert tureen_("unregister", handle, broker=broker).exit_code == 0
    refused = tureen_("register", "--option", "strategy=fast", text, broker=broker)
    assert refused.exit_code == 1
    assert "strategy cannot be 'fast'" in refused.stderr
    assert "one of auto, nt, direct, upa" in refused.stderr
    wrong = tureen_("register", "--option", "upa", text, broker=broker)
    assert wrong.exit_code == 2
    assert "'upa' is not KEY=VALUE" in wrong.stderr


def test_a_select_asks_once_and_register_registers(broker: Broker, trades: str) -> None:
    before = {one["query_id"] for one in json.loads(tureen_("queries", "--json", broker=broker).stdout)}
    text = f"SELECT price FROM {trades} WHERE price > 7"
    piped = tureen_("sql", text, broker=broker)
    assert piped.stdout.splitlines() == ["price", "8.0", "9.0"]
    table = tureen_("sql", text, "--format", "table", broker=broker)
    assert "2 rows" in table.stderr
    after = {one["query_id"] for one in json.loads(tureen_("queries", "--json", broker=broker).stdout)}
    assert not [one for one in after - before if one in piped.output + table.output]

    registered = tureen_("sql", f"register {text}", broker=broker)
    handle = registered.stdout.strip()
    # By the same rule snapshot writes what sql writes.
    assert tureen_("snapshot", handle, broker=broker).stdout == piped.stdout
    refused = tureen_("sql", f"REGISTER SELECT prize FROM {trades}", broker=broker)
    assert "hint: did you mean price?" in refused.stderr
    assert tureen_("unregister", handle, broker=broker).exit_code == 0


def test_alter_unregister_many_and_drop_with_what_reads_it(broker: Broker) -> None:
    name = f"cli_{tureen.new_handle()[:8]}"
    assert tureen_("sql", f"CREATE STREAM {name} (v DOUBLE, w DOUBLE)", broker=broker).exit_code == 0
    handles = [
        tureen_("register", f"SELECT v FROM {name} WHERE v > {n}", broker=broker).stdout.strip()
        for n in range(5)
    ]
    altered = tureen_("alter", handles[0], f"SELECT v FROM {name} WHERE v > 9", broker=broker)
    assert altered.exit_code == 0, altered.output
    assert "difference of both answers" in altered.stderr
    other = tureen_("sql", f"ALTER QUERY '{handles[0]}' AS SELECT w FROM {name}", broker=broker)
    assert "must_refetch" in other.stderr, other.output
    refused = tureen_("alter", handles[0], f"SELECT x FROM {name}", broker=broker)
    assert (refused.exit_code, "^" in refused.stderr) == (1, True)
    by_topic = tureen_("alter", handles[0], f"SELECT v FROM {name}", "--by-topic", broker=broker)
    assert by_topic.exit_code == 0, by_topic.output
    with tureen.connect(broker.url) as client:
        assert client.status(handles[0]).sql == f"SELECT v FROM {name}"

    public = tureen.query_id(handles[1])
    needed = tureen_("snapshot", public, broker=broker)
    assert "public id" in needed.stderr
    assert f"tureen unregister {public}" in needed.stderr
    assert "public id" in tureen_("snapshot", public, "--by-topic", broker=broker).stderr
    ended = tureen_("unregister", handles[0], public, tureen.new_handle(), "--json", broker=broker)
    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["ended"] == [tureen.query_id(handles[0]), public]
    assert [one["place"] for one in json.loads(ended.stdout)["unknown"]] == [2]
    last = tureen.query_id(handles[4])
    assert tureen_("unregister", last, "--by-topic", broker=broker).exit_code == 0
    wait_until(lambda: last not in tureen_("queries", "--json", broker=broker).stdout, what="it is gone")
    dropped = tureen_("sql", f"DROP STREAM {name} CASCADE", broker=broker)
    assert dropped.exit_code == 0, dropped.output
    for handle in handles[2:4]:
        assert f"query {tureen.query_id(handle)} is gone with it" in dropped.stderr
    assert tureen_("unregister", "--all-of", name, broker=broker).exit_code == 1


def test_all_of_a_source_end_in_one_call(broker: Broker) -> None:
    name = f"cli_{tureen.new_handle()[:8]}"
    tureen_("sql", f"CREATE STREAM {name} (v DOUBLE)", broker=broker)
    handles = [tureen_("register", f"SELECT v FROM {name}", broker=broker).stdout.strip() for _ in range(2)]
    ended = tureen_("unregister", "--all-of", name, broker=broker)
    assert (ended.exit_code, ended.stderr.count("is gone")) == (0, 2), ended.output
    assert "no query reads it" in tureen_("unregister", "--all-of", name, broker=broker).stderr
    assert tureen_("sql", f"DROP STREAM {name}", broker=broker).exit_code == 0
    assert len(handles) == 2


def test_a_refusal_shows_the_place(broker: Broker, trades: str) -> None:
    result = tureen_("register", f"SELECT symbol,\n  prize FROM {trades}", broker=broker)
    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if "prize FROM" in line)
    assert lines[at + 1].index("^") == lines[at].index("prize")
    assert "hint: did you mean price?" in result.stderr


@pytest.mark.parametrize("options", [(), ("--analyze",)])
def test_a_refusal_of_explain_counts_columns_of_the_text(
    broker: Broker, trades: str, options: tuple[str, ...]
) -> None:
    text = f"SELECT prize FROM {trades}"
    refused = tureen_("explain", *options, text, broker=broker)
    assert "(line 1, column 8)" in refused.stderr
    lines = refused.stderr.splitlines()
    assert lines[lines.index(text) + 1].index("^") == text.index("prize")
    text = f"SELECT symbol,\nprize FROM {trades}"
    told = json.loads(tureen_("explain", "--json", text, broker=broker).stdout)
    assert (told["error"]["line"], told["error"]["column"]) == (2, 1)


def test_statements_from_stdin_and_file(broker: Broker, trades: str, tmp_path: Path) -> None:
    text = (
        f"-- two;\nSELECT price FROM {trades} WHERE price = 1;\nSELECT price FROM {trades} WHERE price = 2;\n"
    )
    result = tureen_("register", "--json", broker=broker, stdin=text)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["state"] for line in result.stdout.splitlines()] == ["RUNNING", "RUNNING"]
    file = tmp_path / "q.sql"
    file.write_text(text)
    result = tureen_("sql", "--json", "--file", str(file), broker=broker)
    assert [json.loads(line)["rows"] for line in result.stdout.splitlines()] == [
        [[1.0]],
        [[2.0]],
    ]


def test_once_over_a_stream_that_is_missing_leaves_nothing(broker: Broker) -> None:
    name = f"missing_{tureen.new_handle()[:8]}"
    result = tureen_("sql", f"SELECT v FROM {name}", broker=broker)
    assert result.exit_code == 1
    assert name in result.stderr
    wait_until(
        lambda: name not in tureen_("queries", "--json", broker=broker).stdout, what="the query is gone"
    )


def test_a_query_that_waits_says_for_what(broker: Broker, trades: str) -> None:
    missing = f"{trades}x"
    shown = tureen_("register", f"SELECT price FROM {missing}", broker=broker)
    assert shown.exit_code == 0
    assert f"waits for its stream to be created: there is no stream named '{missing}'" in shown.stderr
    assert f"hint: did you mean {trades}?" in shown.stderr
    assert "checked again whenever a stream, a table, a view or a summary is created" in shown.stderr
    preferring = f"SELECT price FROM {trades} WITH PREFERENCE {missing}.Estimate.Count(price)"
    other = tureen_("register", preferring, broker=broker)
    assert f"waits for its summary to be created: there is no summary named '{missing}'" in other.stderr
    text = f"REGISTER SELECT price FROM {missing}"
    told = json.loads(tureen_("sql", text, "--json", broker=broker).stdout)
    assert (told["state"], told["error"]["code"]) == ("PENDING", "unknown_source")
    for handle in (shown.stdout.strip(), other.stdout.strip(), told["handle"]):
        assert tureen_("unregister", handle, broker=broker).exit_code == 0


def test_statements_behind_a_refused_one_are_counted(broker: Broker, trades: str) -> None:
    text = f"DESCRIBE {trades}; DESCRIBE {trades}_no; SHOW STREAMS; SHOW VIEWS"
    result = tureen_("sql", text, broker=broker)
    assert result.exit_code == 1
    assert "statement 2 of 4, the 2 after it were not run: there is no" in result.stderr
    alone = tureen_("sql", f"DESCRIBE {trades}; DESCRIBE {trades}_no", broker=broker)
    assert (alone.exit_code, "not run" in alone.stderr) == (1, False)


def test_a_file_of_statements_tells_places_of_the_file(broker: Broker, trades: str, tmp_path: Path) -> None:
    file = tmp_path / "several.sql"
    file.write_text(
        f"-- a file; of several\nDESCRIBE {trades};\n\n"
        f"/* one; /* inside */ another; */ REGISTER\n  SELECT prize\n  FROM {trades};\n"
        f"  TERMINATE 'nothing that is registered';\n"
        f"SELECT ';' AS semicolon, COUNT(*) AS n FROM {trades}; SELEC 1"
    )
    first = tureen_("sql", "-f", str(file), "--json", broker=broker)
    assert first.exit_code == 1
    error = json.loads(first.stdout.splitlines()[-1])["error"]
    assert (error["code"], error["line"], error["column"]) == ("unknown_column", 5, 10)
    assert error["message"].startswith("statement 2 of 5, the 3 after it were not run: ")
    every = tureen_("sql", "-f", str(file), "--continue", "--json", broker=broker)
    told = [json.loads(line) for line in every.stdout.splitlines()]
    assert every.exit_code == 1
    assert [one.get("error", {}).get("code") for one in told] == [
        None, "unknown_column", "unknown_query", None, "syntax",
    ]  # fmt: skip
    assert [(one["error"]["line"], one["error"]["column"]) for one in told if "error" in one] == [
        (5, 10),
        (7, 3),
        (8, 47 + len(trades)),
    ]
    assert told[3]["rows"] == [[";", 10]]
    shown = tureen_("sql", "-f", "-", "--continue", broker=broker, stdin=file.read_text())
    lines = shown.stderr.splitlines()
    at = lines.index("  SELECT prize")
    assert lines[at + 1].index("^") == 9
    assert "statement 5 of 5: " in shown.stderr


def test_listings_are_for_programs_too(broker: Broker, trades: str) -> None:
    """--format is that of SHOW and DESCRIBE as of a SELECT."""

    def out(form: str, sql: str = f"DESCRIBE {trades}") -> str:
        return tureen_("sql", sql, "--format", form, broker=broker).stdout

    assert out("csv").splitlines()[:2] == ["column,type,nullable", "symbol,STRING,False"]
    first = out("ndjson").splitlines()[0]
    assert json.loads(first) == {"column": "symbol", "type": "STRING", "nullable": False}
    assert json.loads(out("json"))["columns"] == ["column", "type", "nullable"]
    assert "symbol,STRING" not in out("table")
    assert out("csv", f"EXPLAIN SELECT price FROM {trades}").splitlines()[0].count(",") > 1


def test_describe_says_where_rows_come_from(broker: Broker) -> None:
    name = f"cli_{tureen.new_handle()[:8]}"
    made = tureen_(
        "sql",
        f"CREATE TABLE {name} (k STRING PRIMARY KEY, city STRING PATH '$.home.city', at TIMESTAMP NOT NULL) "
        f"WITH (timestamp = 'at', topic = '{name}_t')",
        broker=broker,
    )
    assert made.exit_code == 0, made.output
    told = " ".join(tureen_("sql", f"DESCRIBE {name}", broker=broker).stderr.split())
    assert f"table {name}: topic {name}_t; time at; key (k); city PATH '$.home.city'" in told
    tureen_("sql", f"CREATE VIEW {name}_v AS SELECT k FROM {name}", broker=broker)
    told = tureen_("sql", f"DESCRIBE {name}_v", broker=broker).stderr
    assert f"view {name}_v: reads {name}" in told
    assert tureen_("sql", f"DROP TABLE {name} CASCADE", broker=broker).exit_code == 0


def test_a_file_may_begin_with_a_byte_order_mark(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "written.sql"
    file.write_text("SHOW STREAMS;", encoding="utf-8-sig")
    for args, stdin in ((("-f", str(file)), None), (("-",), file.read_text())):
        run = tureen_("sql", *args, broker=broker, stdin=stdin)
        assert run.exit_code == 0, run.output


def test_what_is_left_undone_is_told(broker: Broker, trades: str) -> None:
    """IF EXISTS and IF NOT EXISTS say what stands, not what was asked for."""

    def told(sql: str) -> str:
        run = tureen_("sql", sql, broker=broker)
        assert run.exit_code == 0, run.output
        return " ".join(run.stderr.split())

    view, query = f"v_{trades}", f"q_{trades}"
    for kind in ("stream", "table", "view", "summary"):
        what = f"there is no {kind} no_{trades}: nothing is dropped"
        assert told(f"DROP {kind} IF EXISTS no_{trades}") == what
    assert told(f"CREATE STREAM IF NOT EXISTS {trades} (other STRING)") == (
        f"stream {trades} exists with another definition: nothing is created"
    )
    told(f"CREATE VIEW {view} AS SELECT price FROM {trades}")
    assert told(f"CREATE VIEW IF NOT EXISTS {view} AS SELECT price FROM {trades}") == (
        f"view {view} exists: nothing is created"
    )
    told(f"CREATE QUERY {query} AS SELECT price FROM {trades}")
    assert told(f"CREATE QUERY IF NOT EXISTS {query} AS SELECT price FROM {trades} WHERE price > 1") == (
        f"query {query} exists with another definition: nothing is created"
    )
    told(f"DROP QUERY {query}; DROP VIEW {view}")


def test_a_query_is_created_by_name_and_dropped(broker: Broker, trades: str) -> None:
    name = f"cli_{tureen.new_handle()[:8]}"
    made = tureen_("sql", f"CREATE QUERY {name} AS SELECT price FROM {trades} WHERE price > 7", broker=broker)
    assert made.exit_code == 0, made.output
    handle = made.stdout.strip()
    assert "is running" in made.stderr
    rows = tureen_("snapshot", handle, "--format", "csv", broker=broker).stdout.splitlines()
    assert rows == ["price", "8.0", "9.0"]
    other = tureen_("register", "--name", name, f"SELECT price FROM {trades}", broker=broker)
    assert (other.exit_code, f"DROP QUERY {name}" in other.stderr) == (1, True)
    shown = tureen_("queries", name, broker=broker)
    assert (name in shown.stdout, tureen.query_id(handle) in shown.stdout) == (True, True)
    (listed,) = json.loads(tureen_("queries", name, "--json", broker=broker).stdout)
    assert listed["name"] == name
    assert f"query {tureen.query_id(handle)}" in tureen_("explain", name, broker=broker).stdout
    assert tureen_("pause", name, broker=broker).exit_code == 0
    assert tureen_("resume", name, broker=broker).exit_code == 0
    assert tureen_("sql", f"DROP QUERY {name}", broker=broker).stderr.endswith("is gone\n")
    absent = tureen_("sql", f"DROP QUERY IF EXISTS {name}", broker=broker)
    assert (absent.exit_code, absent.stderr) == (0, f"there is no query {name}: nothing is dropped\n")
    by_topic = tureen_(
        "register", "--by-topic", "--name", name, f"SELECT price FROM {trades}", broker=broker
    ).stdout.strip()
    assert name in tureen_("queries", "--by-topic", name, "--json", broker=broker).stdout
    assert tureen_("unregister", name, "--by-topic", broker=broker).exit_code == 0
    wait_until(lambda: tureen_("pause", by_topic, broker=broker).exit_code == 1, what="it is gone")


def test_by_topic_alone(broker: Broker, trades: str) -> None:
    registered = tureen_(
        "register", "--by-topic", f"SELECT price FROM {trades} WHERE price = 9", broker=broker
    )
    assert registered.exit_code == 0, registered.output
    handle = registered.stdout.strip()
    fetched = tureen_("snapshot", handle, "--by-topic", "--format", "csv", broker=broker)
    assert fetched.stdout.splitlines() == ["price", "9.0"]
    assert tureen_("unregister", handle, "--by-topic", broker=broker).exit_code == 0


@pytest.mark.parametrize(
    "args",
    [
        ["snapshot"],
        ["watch", "SHOW QUERIES"],
        ["watch", "SELECT 1 FROM s", "--since", "1"],
        ["watch", "h", "--by-topic", "--since", "1"],
        ["watch", "SELECT 1 FROM s", "--by-topic"],
        ["queries", "--by-topic", "--extended"],
        ["snapshot", "h", "--at", "yesterday"],
        ["snapshot", "h", "--format", "xml"],
        ["register", "--handle", "h", "SELECT 1; SELECT 2"],
        ["register", ""],
        ["register", "DROP STREAM s"],
        ["register", "SHOW QUERIES"],
        ["pause"],
        ["unregister"],
        ["unregister", "h", "--all-of", "s"],
        ["unregister", "--all-of", "s", "--by-topic"],
        ["alter", "h", "SELECT 1; SELECT 2"],
        ["alter", "h", "DROP STREAM s"],
        ["explain"],
        ["match", "s", "{}", "--limit", "-1"],
        ["sql", "--file", "/nowhere.sql"],
        ["register", "SELECT 1", "--by-topic", "--kafka", "nonsense"],
    ],
)
def test_wrong_usage_is_exit_code_2(args: list[str]) -> None:
    result = tureen_(*args)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    result = tureen_(args[0], "--json", *args[1:])
    assert result.exit_code == 2, result.output
    assert json.loads(result.stdout)["error"]["code"] == "usage"
    assert result.stderr == ""


def test_a_text_that_is_not_utf8_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_bytes(b"SELECT \xff")
    for args in (["register", "--file", str(file)], ["register", "SELECT \udcff"]):
        result = tureen_(*args)
        assert result.exit_code == 2, result.output
        assert "UTF-8" in result.stderr


def test_the_prompt_runs_statements_and_survives_a_refusal(broker: Broker, trades: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable, [sys.executable, "-m", "tureen", "sql"], broker.environment | {"TERM": "dumb"}
        )
    seen = ""

    def until(text: str) -> bool:
        nonlocal seen
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 65_536).decode()
        return text in seen

    try:
        wait_until(lambda: until("tureen> "), what="the prompt")
        os.write(terminal, b"SELECT nothing\nFROM nowhere;\n")
        wait_until(lambda: until("no stream named"), what=seen)
        os.write(terminal, f"SELECT prize FROM {trades};\n".encode())
        wait_until(lambda: until("did you mean price?"), what=seen)
        os.write(terminal, f"SELECT price FROM {trades} WHERE price = 8;\nexit\n".encode())
        wait_until(lambda: until("1 row"), what=seen)
    finally:
        os.kill(pid, signal.SIGKILL) if os.waitpid(pid, os.WNOHANG) == (0, 0) else None
        os.close(terminal)


def test_what_is_likely_to_be_wrong_is_said_beside_answers(broker: Broker) -> None:
    """CREATE names what it found; answers, lists and watch say what they lack."""
    topic = f"cli-{uuid.uuid4().hex[:8]}"
    name = topic.replace("-", "_")
    columns = "deviceId STRING, temp DOUBLE, at TIMESTAMP"
    sql = f"CREATE STREAM {name} ({columns}) WITH (topic = '{topic}', timestamp = 'at'"
    made = tureen_("sql", f"{sql}, idle_timeout = '2 seconds', partitions = 2)", broker=broker)
    assert f"read from topic {topic}, which did not exist and was created with 2 partitions" in made.stderr
    assert "warning: idle_timeout is 2,000 ms" in made.stderr
    base_ms = 1_700_000_000_000
    broker.produce(topic, [{"deviceId": "a", "at": base_ms}, {"deviceId": "b", "at": base_ms // 1_000}])
    handle = tureen_("register", f"SELECT deviceId FROM {name}", broker=broker).stdout.strip()

    def answered() -> Result:
        return tureen_("snapshot", handle, "--format", "table", broker=broker)

    wait_until(lambda: "1 row," in answered().stderr)
    said = "1 could not be read (tureen dead-letters)"
    assert said in answered().stderr
    assert said in tureen_("watch", handle, "--once", broker=broker).stderr
    listed = " ".join(tureen_("sources", broker=broker).stderr.split())
    assert f"{name}: no record read since the broker started has a value of temp" in listed
    assert f"{name}: 0 late, 1 dead letters since" in listed
    status = " ".join(tureen_("status", broker=broker).stderr.split())
    assert f"{name}: 0 late, 1 dead letters since" in status

    again = tureen_("sql", f"DROP STREAM {name}", broker=broker)
    assert again.exit_code == 1  # the query reads it
    other = tureen_("sql", f"{sql.replace(name, name + 'b', 1)})", broker=broker)
    assert "which has 2 partitions and 2 records" in other.stderr
    assert "none of the newest 2 records has temp" in other.stderr


LETTER = (
    "2026-01-01 10:00:00.000",
    "orders",
    "7",
    "startedat: looks like seconds",
    '{"id": 7, "city": "Bern"}' * 9,
)


def letter_table(capsys: pytest.CaptureFixture[str]) -> str:
    names = ["at (UTC)", "topic", "offset", "reason", "value"]
    show_table(names, [LETTER], [False] * 5, [False, False, False, True, True], folded="reason")
    return capsys.readouterr().out


def test_a_column_that_is_whole_does_not_fold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    tree = "    └ a long operator"
    show_table(["operator", "keeps"], [(tree, "left fifo; right fifo")], [False, False], whole="operator")
    assert any(line.strip("\n").startswith(f" {tree}") for line in capsys.readouterr().out.splitlines())


def test_a_table_in_a_pipe_is_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    row = letter_table(capsys).splitlines()[3]
    assert all(value in row for value in LETTER)
    assert len(row) < 350


def test_a_narrow_table_cuts_long_columns_and_keeps_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = letter_table(capsys).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(value in lines[3] for value in LETTER[:3])
    assert "…" in lines[3]
    reason = lines[1].index("reason"), lines[1].index("value")
    assert " ".join(line[slice(*reason)].strip() for line in lines[3:-1]) == LETTER[3]


def test_a_select_behind_insert_has_its_rows(broker: Broker) -> None:
    name = f"inserted_{uuid.uuid4().hex[:10]}"
    create = f"CREATE STREAM {name} (id BIGINT)"
    rows = ", ".join(f"({number})" for number in range(50))
    text = f"{create}; INSERT INTO {name} VALUES {rows}; SELECT COUNT(*) AS n FROM {name}"
    told = tureen_("sql", text, "--format", "csv", broker=broker)
    assert told.exit_code == 0, told.stderr
    assert told.stdout.split() == ["n", "50"]
