"""Expressions over instants, and instants at the edges of calendars, that the tests of times share."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN

DAY_MS = 86_400_000
EDGES = (
    *(TIMESTAMP_MS_MIN, TIMESTAMP_MS_MIN + 9 * DAY_MS, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MAX - 400 * DAY_MS),
    *(0, -1, 1, -DAY_MS, 951_782_400_000, 951_868_799_999, 1_706_659_200_000, 1_709_164_800_000),
    *(1_711_846_800_000, 1_711_846_799_999, 1_711_848_600_000, 1_729_990_800_000, 1_729_992_600_000),
    *(-2_208_988_800_000, 978_307_199_999, 4_102_444_800_000, 1_609_459_200_000, 1_230_768_000_000),
)
"""Years 1 and 9999, 1970, leap days, ends of months, changes of summer time, 1900, 2001, 2100, week 53."""
INSTANTS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-2_300_000_000_000, 4_300_000_000_000),
    st.integers(TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX),
)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Nuuk", "UTC")
PARTS = (
    *(
        "MILLENNIUM",
        "CENTURY",
        "DECADE",
        "YEAR",
        "ISOYEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "DOW",
        "ISODOW",
    ),
    *("DOY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "EPOCH"),
)
TRUNCATED = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "ISOYEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR"),
    *("MINUTE", "SECOND", "MILLISECOND"),
)
UNITS = ("DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
