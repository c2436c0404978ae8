"""Amounts as people read them."""

from __future__ import annotations


def size_of(count: float) -> str:
    """Bytes.

    >>> size_of(512), size_of(2048), size_of(-3 * 1024**2), size_of(5e12)
    ('512 B', '2.0 KiB', '-3.0 MiB', '4.5 TiB')
    """
    sign, left = ("-" if count < 0 else ""), abs(float(count))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{sign}{left:.0f} {unit}" if unit == "B" else f"{sign}{left:.1f} {unit}"
        left /= 1024
    return f"{sign}{left:.1f} TiB"


def duration_of_ns(ns: float) -> str:
    """A length of time.

    >>> duration_of_ns(900), duration_of_ns(1.5e6), duration_of_ns(90e9), duration_of_ns(7.2e12)
    ('900 ns', '1.5 ms', '90.0 s', '2.0 h')
    """
    left = float(ns)
    for unit, more in (("ns", 1e3), ("µs", 1e3), ("ms", 1e3)):
        if left < more:
            return f"{left:.0f} {unit}" if unit == "ns" else f"{left:.1f} {unit}"
        left /= more
    for unit, length in (("s", 1), ("min", 60), ("h", 3_600), ("d", 86_400)):
        if left < {"s": 120, "min": 7_200, "h": 172_800}.get(unit, float("inf")):
            return f"{left / length:.1f} {unit}"
    raise AssertionError("days have no end")
