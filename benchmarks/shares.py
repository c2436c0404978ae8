"""What processes take of the cores."""

import time

import psutil


def of_kafka(kafka: str) -> psutil.Process:
    """The process that listens at Kafka's address."""
    port = int(kafka.rpartition(":")[2])
    listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
    return psutil.Process(next(c.pid for c in listening if c.laddr.port == port and c.pid is not None))


def shares(processes: dict[str, psutil.Process], seconds: float) -> dict[str, float]:
    """Percent of a core that each takes in so many seconds."""
    before = {name: cpu_s(process) for name, process in processes.items()}
    began_s = time.perf_counter()
    time.sleep(seconds)
    passed_s = time.perf_counter() - began_s
    return {name: 100 * (cpu_s(process) - before[name]) / passed_s for name, process in processes.items()}


def cpu_s(process: psutil.Process) -> float:
    """Seconds of a core that a process has taken."""
    times = process.cpu_times()
    return float(times.user + times.system)
