"""What is told of errors that Spark hands over as text."""

from __future__ import annotations

import socket

import pytest
from pyspark.errors import PythonException

from spark_jobs.cluster import is_local, reach
from spark_jobs.errors import MasterUnreachable
from spark_jobs.failures import root_text
from spark_jobs.session import start
from spark_jobs.settings import SparkSettings
from tests.kafka import free_ports

TRACEBACK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise KeyError
KeyError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "worker.py", line 2, in main
    raise ValueError
ValueError: [CONDITION] what happened.
Please look at this and that.
"""


def test_of_a_traceback_the_last_exception_is_told() -> None:
    assert root_text(PythonException(TRACEBACK)) == "ValueError: [CONDITION] what happened."
    assert root_text(PythonException("nothing but this")) == "nothing but this"


def test_masters_that_listen_and_those_that_do_not() -> None:
    [nobody] = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = listening.getsockname()[1]
        reach(f"spark://127.0.0.1:{nobody},127.0.0.1:{there}")
    for master in (f"spark://127.0.0.1:{nobody}", "spark://127.0.0.1", "spark://", "spark://a:b"):
        with pytest.raises(MasterUnreachable) as caught:
            reach(master)
        assert caught.value.master == master
    for other in ("local[2]", "yarn", "k8s://https://somewhere:443"):
        reach(other)


def test_a_job_for_a_master_that_is_not_there_starts_nothing(java: None) -> None:
    [nobody] = free_ports(1)
    with pytest.raises(MasterUnreachable):
        start("nothing", SparkSettings(f"spark://127.0.0.1:{nobody}"))


def test_which_masters_are_threads_of_the_driver() -> None:
    assert [is_local(one) for one in ("local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]")] == [
        *(True, True, True),
        False,
    ]
