"""CREATE STREAM | TABLE ... FROM TOPIC to what is known of it before any record is looked at."""

from __future__ import annotations

from sqlglot import exp

from engine.language import known_options
from engine.language.bind.environment import Environment
from engine.language.bind.formats import key_format_of, written_format
from engine.language.bind.options import WithOptions
from engine.language.bind.streams import is_topic
from engine.language.query import CreateFromTopic
from engine.language.render import quoted, render_span
from engine.model.source import SourceName
from tureen.errors import SyntaxRefused

_OF_NEW_TOPICS = {
    "topic": "it is named behind FROM TOPIC",
    "partitions": "the topic has some already",
    "create_topic": "the topic has to exist: its records tell the columns",
}
_OPTIONS = tuple(name for name in known_options.STREAM if name not in _OF_NEW_TOPICS)


def bind_from_topic(tree: exp.Expr, env: Environment) -> CreateFromTopic:
    """Raises SyntaxRefused, TypeMismatch, NotSupported."""
    text, topic = env.text, str(tree.args["topic"].this)
    if not is_topic(topic):
        raise text.of_node(tree.args["topic"]).refuse(
            SyntaxRefused,
            "this is no name of a topic",
            hint="a topic's name has at most 249 letters, digits, dots, - and _",
        )
    options = WithOptions(tree.args.get("options") or (), _OPTIONS, text, _OF_NEW_TOPICS)
    given = options.written()
    retain = tree.args.get("retain")
    if retain is not None:
        if "retain" in options:
            raise text.of_node(retain).refuse(
                SyntaxRefused, "retention is given twice", hint="leave one of them out"
            )
        given["retain"] = quoted(render_span(int(retain.this)))
    timestamp = options.string("timestamp") if "timestamp" in options else None
    if "timestamp" in options and timestamp is None:
        raise options.wrong("timestamp", "write timestamp = 'column'")
    for name in known_options.DURATIONS:
        options.duration(name, 0)
    format_ = written_format(options)
    return CreateFromTopic(
        SourceName(str(tree.this.this)),
        "table" if tree.args["what"] == "TABLE" else "stream",
        topic,
        given,
        format_ if "format" in options else None,
        key_format_of(options),
        timestamp,
        bool(tree.args.get("if_not_exists")),
    )
