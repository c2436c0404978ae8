"""Numbers to Nexmark's events: pure Spark expressions, the same event for a number on any executor.

Nothing is drawn: each choice of an event is a hash of (seed, number, what is chosen), taken as a number in
[0, 1). So a run can be cut into any partitions, repeated, or begun in the middle. Event n is, by n mod 50, a
person (0), an auction (1 to 3) or a bid (4 to 49); its timestamp is ``base + n / rate``. With a disorder of
g the event at place p is number ``p div g * g + p * 953 mod g``: the same events, shuffled in groups.

What differs from the generator that users of Flink know: a seed says what comes; event 0 is the first, so
that the person and the auction 1000 exist; and a bidder is one of the people (there 1,000 is added twice, and
bids have no person).

Cost: O(1) an event, most of it for ``extra``, the text that brings rows to their sizes of 200, 500 and 100
bytes on average (of a bid the channel and its URL are not counted).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_jobs.nexmark.draw import Draw
from spark_jobs.nexmark.settings import DISORDER_STEP, NexmarkSettings

PERSON, AUCTION, BID = "person", "auction", "bid"
KINDS = (PERSON, AUCTION, BID)

EVENTS_A_ROUND: Final = 50
PEOPLE_A_ROUND: Final = 1
AUCTIONS_A_ROUND: Final = 3
FIRST_ID: Final = 1_000
"""The first id of people, and of auctions."""
FIRST_CATEGORY: Final = 10
CATEGORIES: Final = 5
HOT_EVERY: Final = 100
"""The first of each hundred auctions is hot, and of people one as seller and one as bidder."""
HOT_SELLERS: Final = 3 / 4
HOT_AUCTIONS: Final = 1 / 2
HOT_BIDDERS: Final = 3 / 4
PEOPLE_ACTIVE: Final = 1_000
AUCTIONS_IN_FLIGHT: Final = 100
LEAD: Final = 10
"""How many ids of people and auctions that do not exist yet are chosen as well."""
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS: Final = 10_000
CHANNELS_WITH_ID: Final = 9 / 10
BYTES: Final = {PERSON: 200, AUCTION: 500, BID: 100}

STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent",
    "Cheyenne",
)  # fmt: skip
FIRST_NAMES: Final = (
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
)  # fmt: skip
LAST_NAMES: Final = (
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
)  # fmt: skip


def numbered(places: DataFrame, settings: NexmarkSettings) -> DataFrame:
    """``place``, ``n``, ``kind`` of a column ``place``, the places of events in the run from 0."""
    place = F.col("place") + F.lit(settings.first)
    if settings.disorder > 1:
        group = F.lit(settings.disorder).cast("bigint")
        within = F.pmod(F.pmod(place, group) * DISORDER_STEP, group)
        place = place - F.pmod(place, group) + within
    numbers = places.select("place", place.alias("n"))
    turn = F.pmod("n", F.lit(EVENTS_A_ROUND))
    kind = (
        F.when(turn < PEOPLE_A_ROUND, PERSON)
        .when(turn < PEOPLE_A_ROUND + AUCTIONS_A_ROUND, AUCTION)
        .otherwise(BID)
    )
    return numbers.select("*", kind.alias("kind"))


def rows(numbers: DataFrame, kind: str, settings: NexmarkSettings) -> DataFrame:
    """The rows of one kind: ``place``, ``at`` (ms), the stream's columns; of what ``numbered`` gives."""
    made = MADE[kind](settings)
    chosen = numbers.where(F.col("kind") == kind).withColumn("at", _timestamp_ms(F.col("n"), settings))
    chosen = chosen.withColumns(dict(made.first))
    return chosen.select("place", "at", *(column.alias(name) for name, column in made.columns.items()))


@dataclass(frozen=True, slots=True)
class Made:
    """How the rows of a kind are made. first: columns that are made before the others, which name them."""

    first: Mapping[str, Column]
    columns: Mapping[str, Column]


def _person(settings: NexmarkSettings) -> Made:
    draw = Draw(settings.seed, F.col("n"))
    card = (F.lpad(draw.below(10_000, f"card {part}").cast("string"), 4, "0") for part in range(4))
    texts = {
        "name": F.concat_ws(
            " ", draw.one_of(FIRST_NAMES, "first name"), draw.one_of(LAST_NAMES, "last name")
        ),
        "email_address": F.concat(draw.word(7, "mailbox"), F.lit("@"), draw.word(5, "host"), F.lit(".com")),
        "credit_card": F.concat_ws(" ", *card),
        "city": draw.one_of(CITIES, "city"),
        "state": draw.one_of(STATES, "state"),
    }
    size = sum((F.length(text) for text in texts), F.lit(8))
    return Made(
        texts,
        {
            "id": _last_person(F.col("n")) + FIRST_ID,
            **{name: F.col(name) for name in texts},
            "date_time": F.timestamp_millis("at"),
            "extra": draw.extra(BYTES[PERSON], size, 190),
        },
    )


def _auction(settings: NexmarkSettings) -> Made:
    n = F.col("n")
    draw = Draw(settings.seed, n)
    turn = F.pmod(n, F.lit(EVENTS_A_ROUND))
    hot = _first_of_hundred(_last_person(n))
    seller = F.when(draw.happens(HOT_SELLERS, "hot seller"), hot).otherwise(_active_person(draw, n, "seller"))
    events_ahead = AUCTIONS_IN_FLIGHT * EVENTS_A_ROUND // AUCTIONS_A_ROUND
    horizon_ms = _timestamp_ms(n + events_ahead, settings) - F.col("at")
    later_ms = draw.below(F.greatest(horizon_ms * 2, F.lit(1)), "expires") + 1
    size = F.length("item_name") + F.length("description") + 8 * 6
    return Made(
        {
            "item_name": draw.word(20, "item"),
            "description": draw.word(100, "description"),
            "initial_bid": draw.price("initial bid"),
        },
        {
            "id": _round(n) * AUCTIONS_A_ROUND + turn - PEOPLE_A_ROUND + FIRST_ID,
            "item_name": F.col("item_name"),
            "description": F.col("description"),
            "initial_bid": F.col("initial_bid"),
            "reserve": F.col("initial_bid") + draw.price("reserve"),
            "date_time": F.timestamp_millis("at"),
            "expires": F.timestamp_millis(F.col("at") + later_ms),
            "seller": seller + FIRST_ID,
            "category": draw.below(CATEGORIES, "category") + FIRST_CATEGORY,
            "extra": draw.extra(BYTES[AUCTION], size, 540),
        },
    )


def _bid(settings: NexmarkSettings) -> Made:
    n = F.col("n")
    draw = Draw(settings.seed, n)
    auctions = (_round(n) + 1) * AUCTIONS_A_ROUND
    auction = F.when(draw.happens(HOT_AUCTIONS, "hot auction"), _first_of_hundred(auctions - 1)).otherwise(
        _recent(draw, auctions, AUCTIONS_IN_FLIGHT, "auction")
    )
    bidder = F.when(
        draw.happens(HOT_BIDDERS, "hot bidder"), _first_of_hundred(_last_person(n)) + 1
    ).otherwise(_active_person(draw, n, "bidder"))
    hot = draw.happens(1 / 2, "hot channel")
    number = draw.below(CHANNELS, "channel")
    numbered_channel = F.concat(F.lit("channel-"), number.cast("string"))
    return Made(
        {
            "channel": F.when(hot, draw.one_of(HOT_CHANNELS, "channel")).otherwise(numbered_channel),
            "channel_number": F.when(~hot, number),
        },
        {
            "auction": auction + FIRST_ID,
            "bidder": bidder + FIRST_ID,
            "price": draw.price("price"),
            "channel": F.col("channel"),
            "url": _url(settings.seed, F.col("channel"), F.col("channel_number")),
            "date_time": F.timestamp_millis("at"),
            "extra": draw.extra(BYTES[BID], F.lit(8 * 4), 82),
        },
    )


MADE: Final[Mapping[str, Callable[[NexmarkSettings], Made]]] = {PERSON: _person, AUCTION: _auction, BID: _bid}


def _url(seed: int, channel: Column, number: Column) -> Column:
    """A channel's address, always the same. number: the channel's or NULL; its bits reversed are the id."""
    draw = Draw(seed, channel)
    letters = draw.letters(4 * 3, "folders", mark="_")
    folders = (
        F.substr(letters, F.lit(4 * place + 1), (draw.below(2, f"folder {place}") + 3).cast("int"))
        for place in range(3)
    )
    address = F.concat(
        F.lit("https://www.nexmark.com/"), F.concat_ws("/", *folders), F.lit("/item.htm?query=1")
    )
    bits = F.conv(F.reverse(F.lpad(F.bin(number), 32, "0")), 2, 10).cast("bigint")
    id_ = F.when(bits >= 2**31, F.lit(2**32) - bits).otherwise(bits).cast("string")
    has_id = number.isNotNull() & draw.happens(CHANNELS_WITH_ID, "channel id")
    return F.when(has_id, F.concat(address, F.lit("&channel_id="), id_)).otherwise(address)


def _round(n: Column) -> Column:
    return _div(n, F.lit(EVENTS_A_ROUND))


def _last_person(n: Column) -> Column:
    """Place, from 0, of the last person up to event n."""
    return _round(n)


def _active_person(draw: Draw, n: Column, purpose: str) -> Column:
    return _recent(draw, _last_person(n) + 1, PEOPLE_ACTIVE, purpose)


def _recent(draw: Draw, made: Column, at_most: int, purpose: str) -> Column:
    """Evenly one of the last ``at_most`` of so many made, or of those to come next."""
    active = F.least(made, F.lit(at_most))
    return made - active + draw.below(active + LEAD, purpose)


def _timestamp_ms(n: Column, settings: NexmarkSettings) -> Column:
    return F.lit(settings.base_ms) + _div(n * 1_000, F.lit(settings.rate).cast("bigint"))


def _div(left: Column, right: Column) -> Column:
    return F.call_function("div", left, right)


def _first_of_hundred(place: Column) -> Column:
    return place - F.pmod(place, F.lit(HOT_EVERY))
