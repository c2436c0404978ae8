"""Rows of TPC-H by its public schema and value ranges, from a seed; and the statements of its tables.

As its dbgen makes them: how many rows each table has, which keys there are, which values a column has and how
dates, flags and totals hang together. Not as dbgen: texts are words drawn at random, without its grammar, and
the few suppliers that somebody complained of, and orders with special requests, are more. ``lineitem`` and
``orders`` are streams in arrival time, the others tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.batch import BATCH_ROWS_MAX, Batch, versions
from engine.model.source import Stream

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "tpch").glob("q*.sql"))}
"""The queries with the substitution values of the specification's validation."""

STREAMS = ("orders", "lineitem")
_COLUMNS = {
    "region": "r_regionkey INTEGER PRIMARY KEY, r_name STRING, r_comment STRING",
    "nation": "n_nationkey INTEGER PRIMARY KEY, n_name STRING, n_regionkey INTEGER, n_comment STRING",
    "supplier": """s_suppkey BIGINT PRIMARY KEY, s_name STRING, s_address STRING, s_nationkey INTEGER,
        s_phone STRING, s_acctbal DECIMAL(15, 2), s_comment STRING""",
    "part": """p_partkey BIGINT PRIMARY KEY, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING,
        p_size INTEGER, p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING""",
    "partsupp": """ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INTEGER, ps_supplycost DECIMAL(15, 2),
        ps_comment STRING, PRIMARY KEY (ps_partkey, ps_suppkey)""",
    "customer": """c_custkey BIGINT PRIMARY KEY, c_name STRING, c_address STRING, c_nationkey INTEGER,
        c_phone STRING, c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING""",
    "orders": """o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2),
        o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INTEGER, o_comment STRING""",
    "lineitem": """l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER,
        l_quantity DECIMAL(15, 2), l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2),
        l_tax DECIMAL(15, 2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE,
        l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING""",
}
DECLARED = {
    name: f"CREATE {'STREAM' if name in STREAMS else 'TABLE'} {name} ({columns}) WITH (topic = '{name}')"
    for name, columns in _COLUMNS.items()
}
"""The statement of each table."""


def _words(text: str, between: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(between))


REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = _words(
    "ALGERIA 0,ARGENTINA 1,BRAZIL 1,CANADA 1,EGYPT 4,ETHIOPIA 0,FRANCE 3,GERMANY 3,INDIA 2,INDONESIA 2,"
    "IRAN 4,IRAQ 4,JAPAN 2,JORDAN 4,KENYA 0,MOROCCO 0,MOZAMBIQUE 0,PERU 1,CHINA 2,ROMANIA 3,SAUDI ARABIA 4,"
    "VIETNAM 2,RUSSIA 3,UNITED KINGDOM 3,UNITED STATES 1",
    ",",
)
"""With the places of their regions."""
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPES = (
    _words("STANDARD SMALL MEDIUM LARGE ECONOMY PROMO"),
    _words("ANODIZED BURNISHED PLATED POLISHED BRUSHED"),
    _words("TIN NICKEL BRASS STEEL COPPER"),
)
CONTAINERS = _words("SM LG MED JUMBO WRAP"), _words("CASE BOX BAG JAR PKG PACK CAN DRUM")
COLOURS = _words(
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished "
    "chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab "
    "firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory "
    "khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint "
    "misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff "
    "purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel "
    "tan thistle tomato turquoise violet wheat white yellow"
)
WORDS = _words(
    "special pending unusual express furiously slyly carefully blithely quickly packages deposits "
    "accounts ideas theodolites requests foxes instructions pinto beans Customer Complaints "
    "Recommends sleep nag haggle boost"
)

Ints = npt.NDArray[np.int64]
_FIRST_DAY = int(np.datetime64("1992-01-01").astype(int))
_LAST_DAY = int(np.datetime64("1998-08-02").astype(int))
_TODAY = int(np.datetime64("1995-06-17").astype(int))
_MONEY = pa.decimal128(15, 2)


def make_rows(scale: float, seed: int) -> dict[str, pa.Table]:
    """All tables, by name; as many rows as the specification has at this scale."""
    make = _Maker(np.random.default_rng(seed), scale)
    return {name: getattr(make, name)() for name in DECLARED}


@dataclass(slots=True)
class _Maker:
    """Makes one table after another; prices and dates of rows are those of the parts and orders before."""

    rng: np.random.Generator
    scale: float
    _order_keys: Ints = field(init=False)
    _order_days: Ints = field(init=False)

    def count(self, whole: int) -> int:
        return max(4, round(whole * self.scale))

    def region(self) -> pa.Table:
        keys = pa.array(range(len(REGIONS)), pa.int32())
        return pa.table({"r_regionkey": keys, "r_name": REGIONS, "r_comment": self._text(len(REGIONS), 5)})

    def nation(self) -> pa.Table:
        names, regions = zip(*(nation.rsplit(" ", 1) for nation in NATIONS), strict=True)
        return pa.table(
            {
                "n_nationkey": pa.array(range(len(NATIONS)), pa.int32()),
                "n_name": pa.array(names),
                "n_regionkey": pa.array([int(region) for region in regions], pa.int32()),
                "n_comment": self._text(len(NATIONS), 5),
            }
        )

    def supplier(self) -> pa.Table:
        n = self.count(10_000)
        nations = self._whole(n, 0, 24)
        return pa.table(
            {
                "s_suppkey": np.arange(1, n + 1),
                "s_name": [f"Supplier#{key:09}" for key in range(1, n + 1)],
                "s_address": self._text(n, 2),
                "s_nationkey": pa.array(nations, pa.int32()),
                "s_phone": self._phones(nations),
                "s_acctbal": _money(self._whole(n, -99_999, 999_999)),
                "s_comment": self._text(n, 6),
            }
        )

    def part(self) -> pa.Table:
        n = self.count(200_000)
        keys, makers = np.arange(1, n + 1), self._whole(n, 1, 5)
        brands = 10 * makers + self._whole(n, 1, 5)
        return pa.table(
            {
                "p_partkey": keys,
                "p_name": self._text(n, 5, COLOURS),
                "p_mfgr": [f"Manufacturer#{maker}" for maker in makers],
                "p_brand": [f"Brand#{brand}" for brand in brands],
                "p_type": self._each(n, *TYPES),
                "p_size": pa.array(self._whole(n, 1, 50), pa.int32()),
                "p_container": self._each(n, *CONTAINERS),
                "p_retailprice": _money(_price(keys)),
                "p_comment": self._text(n, 2),
            }
        )

    def partsupp(self) -> pa.Table:
        parts = np.repeat(np.arange(1, self.count(200_000) + 1), 4)
        n = len(parts)
        return pa.table(
            {
                "ps_partkey": parts,
                "ps_suppkey": self._supplier(parts, np.tile(np.arange(4), n // 4)),
                "ps_availqty": pa.array(self._whole(n, 1, 9_999), pa.int32()),
                "ps_supplycost": _money(self._whole(n, 100, 100_000)),
                "ps_comment": self._text(n, 4),
            }
        )

    def customer(self) -> pa.Table:
        n = self.count(150_000)
        nations = self._whole(n, 0, 24)
        return pa.table(
            {
                "c_custkey": np.arange(1, n + 1),
                "c_name": [f"Customer#{key:09}" for key in range(1, n + 1)],
                "c_address": self._text(n, 2),
                "c_nationkey": pa.array(nations, pa.int32()),
                "c_phone": self._phones(nations),
                "c_acctbal": _money(self._whole(n, -99_999, 999_999)),
                "c_mktsegment": self._each(n, SEGMENTS),
                "c_comment": self._text(n, 6),
            }
        )

    def orders(self) -> pa.Table:
        n = self.count(1_500_000)
        places = np.arange(n)
        self._order_keys = places // 8 * 32 + places % 8 + 1  # eight keys of 32 are used
        self._order_days = self._whole(n, _FIRST_DAY, _LAST_DAY - 151)
        customers = self._whole(n, 1, self.count(150_000))
        customers -= (customers % 3 == 0) & (customers > 1)  # a third of the customers has no order
        status = np.where(self._order_days < _TODAY - 121, 0, np.where(self._order_days > _TODAY, 1, 2))
        return pa.table(
            {
                "o_orderkey": self._order_keys,
                "o_custkey": customers,
                "o_orderstatus": _picked("FOP", status),
                "o_totalprice": _money(self._whole(n, 90_000, 50_000_000)),
                "o_orderdate": _days(self._order_days),
                "o_orderpriority": self._each(n, PRIORITIES),
                "o_clerk": [f"Clerk#{clerk:09}" for clerk in self._whole(n, 1, self.count(1_000))],
                "o_shippriority": pa.array(np.zeros(n), pa.int32()),
                "o_comment": self._text(n, 6),
            }
        )

    def lineitem(self) -> pa.Table:
        lines = self._whole(len(self._order_keys), 1, 7)
        orders = np.repeat(np.arange(len(lines)), lines)
        n = len(orders)
        first = np.repeat(np.cumsum(lines) - lines, lines)
        parts, quantities = self._whole(n, 1, self.count(200_000)), self._whole(n, 1, 50)
        ordered = self._order_days[orders]
        shipped = ordered + self._whole(n, 1, 121)
        received = shipped + self._whole(n, 1, 30)
        returned = np.where(received <= _TODAY, self._whole(n, 0, 1), 2)
        return pa.table(
            {
                "l_orderkey": self._order_keys[orders],
                "l_partkey": parts,
                "l_suppkey": self._supplier(parts, self._whole(n, 0, 3)),
                "l_linenumber": pa.array(np.arange(n) - first + 1, pa.int32()),
                "l_quantity": _money(100 * quantities),
                "l_extendedprice": _money(quantities * _price(parts)),
                "l_discount": _money(self._whole(n, 0, 10)),
                "l_tax": _money(self._whole(n, 0, 8)),
                "l_returnflag": _picked("RAN", returned),
                "l_linestatus": _picked("FO", (shipped > _TODAY).astype(int)),
                "l_shipdate": _days(shipped),
                "l_commitdate": _days(ordered + self._whole(n, 30, 90)),
                "l_receiptdate": _days(received),
                "l_shipinstruct": self._each(n, INSTRUCTIONS),
                "l_shipmode": self._each(n, MODES),
                "l_comment": self._text(n, 3),
            }
        )

    def _whole(self, n: int, least: int, most: int) -> Ints:
        return self.rng.integers(least, most + 1, n)

    def _supplier(self, parts: Ints, which: Ints) -> Ints:
        """One of the four suppliers of each part, no two alike however few there are."""
        suppliers = self.count(10_000)
        apart = suppliers // 4 + (parts - 1) // suppliers % max(1, suppliers // 16)
        return np.asarray((parts + which * apart) % suppliers + 1)

    def _each(self, n: int, *lists: tuple[str, ...]) -> pa.Array:
        """A word of each list, with blanks between."""
        return self._joined(n, [(words, self._whole(n, 0, len(words) - 1)) for words in lists])

    def _text(self, n: int, count: int, words: tuple[str, ...] = WORDS) -> pa.Array:
        return self._each(n, *[words] * count)

    @staticmethod
    def _joined(n: int, parts: list[tuple[tuple[str, ...], Ints]]) -> pa.Array:
        chosen = [np.array(words, object)[places] for words, places in parts]
        return pa.array([" ".join(row) for row in zip(*chosen, strict=True)])

    def _phones(self, nations: Ints) -> pa.Array:
        numbers = self.rng.integers([100, 100, 1_000], [1_000, 1_000, 10_000], (len(nations), 3))
        return pa.array([f"{10 + k}-{a}-{b}-{c}" for k, (a, b, c) in zip(nations, numbers, strict=True)])


def _price(parts: Ints) -> Ints:
    """The retail price of a part, in cents."""
    return np.asarray(90_000 + parts // 10 % 20_001 + 100 * (parts % 1_000))


def _money(cents: Ints) -> pa.Array:
    halves = np.stack([cents, cents >> 63], axis=1)  # 128 bits, the low half first
    return pa.Array.from_buffers(_MONEY, len(cents), [None, pa.py_buffer(halves.tobytes())])


def _days(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())


def _picked(letters: str, places: npt.NDArray[np.integer]) -> pa.Array:
    return pa.array(np.array(list(letters), object)[places])


def batches(
    source: Stream, rows: pa.Table, size: int = BATCH_ROWS_MAX, first: int = 0, gone: bool = False
) -> Iterator[Batch]:
    """The rows as steps bring them, in pieces, from one partition. first: their first offset, and the instant
    of the first row, in ms. gone: of a table, that they take their keys away.
    """
    for begin in range(0, rows.num_rows, size):
        piece = rows.slice(begin, size)
        places = np.arange(first + begin, first + begin + piece.num_rows)
        batch = Batch.from_arrow(source.schema, piece, np.zeros(piece.num_rows), places, places)
        if source.is_table:
            batch = versions(source, batch, np.full(piece.num_rows, gone))
        yield batch


def total(rows: Mapping[str, pa.Table]) -> int:
    """How many rows there are."""
    return sum(table.num_rows for table in rows.values())
