"""Ten questions, as five systems ask them and as this language does; and the streams that they are about."""

from __future__ import annotations

from engine.language.translation.dialects import DialectName

SCHEMA = (
    """CREATE STREAM orders (id BIGINT NOT NULL, customer STRING, city STRING, country STRING, price DOUBLE,
    at TIMESTAMP NOT NULL) WITH (timestamp = 'at')""",
    """CREATE STREAM payments (order_id BIGINT NOT NULL, amount DOUBLE, paid TIMESTAMP NOT NULL)
    WITH (timestamp = 'paid')""",
    "CREATE TABLE customers (customer STRING PRIMARY KEY, name STRING)",
)
"""All orders are of one country, by which ksqlDB groups where others group by nothing."""

ABOUT = {
    "selection": "dear orders",
    "tumbling": "orders an hour",
    "hopping": "the mean price of an hour, every five minutes",
    "session": "orders of a customer less than ten minutes apart",
    "totals": "the total of each customer",
    "latest_of_each": "the latest order of each customer",
    "top_three": "the three dearest orders of each city",
    "table_join": "orders with their customers' names",
    "within_five_minutes": "orders that are paid within five minutes",
    "last_ten_minutes": "customers of the last ten minutes",
}

OURS = {
    "selection": "SELECT id, price FROM orders WHERE price > 100",
    "tumbling": (
        "SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(orders, 1 HOUR) GROUP BY "
        "window_start, window_end"
    ),
    "hopping": (
        "SELECT window_start, window_end, AVG(price) AS mean FROM HOP(orders, 5 MINUTES, 1 "
        "HOUR) GROUP BY window_start, window_end"
    ),
    "session": (
        "SELECT customer, COUNT(*) AS n FROM SESSION(orders PARTITION BY customer, 10 "
        "MINUTES) GROUP BY window_start, window_end, customer"
    ),
    "totals": "SELECT customer, SUM(price) AS total FROM orders GROUP BY customer",
    "latest_of_each": "SELECT customer, id, price FROM orders [PARTITION BY customer ROWS 1]",
    "top_three": (
        "SELECT city, id, price FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY city "
        "ORDER BY price DESC) <= 3"
    ),
    "table_join": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer",
    "within_five_minutes": (
        "SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.order_id AND p.paid "
        "BETWEEN o.at AND o.at + INTERVAL '5' MINUTE"
    ),
    "last_ten_minutes": "SELECT COUNT(DISTINCT customer) AS customers FROM orders [RANGE 10 MINUTES]",
}

THEIRS: dict[DialectName, dict[str, str]] = {
    "flink": {
        "selection": "SELECT id, price FROM orders WHERE price > 100",
        "tumbling": (
            "SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, "
            "DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end"
        ),
        "hopping": (
            "SELECT window_start, window_end, AVG(price) AS mean FROM TABLE(HOP(TABLE orders, "
            "DESCRIPTOR(at), INTERVAL '5' MINUTES, INTERVAL '1' HOUR)) GROUP BY window_start, "
            "window_end"
        ),
        "session": (
            "SELECT window_start, window_end, customer, COUNT(*) AS n FROM TABLE(SESSION(TABLE "
            "orders PARTITION BY customer, DESCRIPTOR(at), INTERVAL '10' MINUTES)) GROUP BY "
            "window_start, window_end, customer"
        ),
        "totals": "SELECT customer, SUM(price) AS total FROM orders GROUP BY customer",
        "latest_of_each": (
            "SELECT customer, id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer "
            "ORDER BY at DESC) AS rn FROM orders) WHERE rn = 1"
        ),
        "top_three": (
            "SELECT city, id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER "
            "BY price DESC) AS rn FROM orders) WHERE rn <= 3"
        ),
        "table_join": (
            "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers FOR SYSTEM_TIME AS OF o.at "
            "AS c ON o.customer = c.customer"
        ),
        "within_five_minutes": (
            "SELECT o.id, p.amount FROM orders o, payments p WHERE o.id = p.order_id AND p.paid "
            "BETWEEN o.at AND o.at + INTERVAL '5' MINUTE"
        ),
        "last_ten_minutes": (
            "SELECT COUNT(DISTINCT customer) AS customers FROM orders WHERE at > "
            "CURRENT_TIMESTAMP - INTERVAL '10' MINUTE"
        ),
    },
    "ksqldb": {
        "selection": "SELECT id, price FROM orders WHERE price > 100 EMIT CHANGES;",
        "tumbling": (
            "SELECT WINDOWSTART AS window_start, WINDOWEND AS window_end, country, COUNT(*) AS n "
            "FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY country EMIT CHANGES;"
        ),
        "hopping": (
            "SELECT WINDOWSTART AS window_start, WINDOWEND AS window_end, AVG(price) AS mean "
            "FROM orders WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) GROUP BY country "
            "EMIT CHANGES;"
        ),
        "session": (
            "SELECT customer, COUNT(*) AS n FROM orders WINDOW SESSION (10 MINUTES) GROUP BY "
            "customer EMIT CHANGES;"
        ),
        "totals": (
            "CREATE TABLE totals AS SELECT customer, SUM(price) AS total FROM orders GROUP BY "
            "customer EMIT CHANGES;"
        ),
        "latest_of_each": (
            "SELECT customer, LATEST_BY_OFFSET(id) AS id, LATEST_BY_OFFSET(price) AS price FROM "
            "orders GROUP BY customer EMIT CHANGES;"
        ),
        "top_three": "SELECT city, TOPK(price, 3) AS dearest FROM orders GROUP BY city EMIT CHANGES;",
        "table_join": (
            "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer EMIT CHANGES;"
        ),
        "within_five_minutes": (
            "SELECT o.id, p.amount FROM orders o JOIN payments p WITHIN 5 MINUTES ON o.id = "
            "p.order_id EMIT CHANGES;"
        ),
        "last_ten_minutes": (
            "SELECT country, COUNT_DISTINCT(customer) AS customers FROM orders WHERE ROWTIME >= "
            "UNIX_TIMESTAMP() - 600000 GROUP BY country EMIT CHANGES;"
        ),
    },
    "materialize": {
        "selection": "SELECT id, price FROM orders WHERE price > 100;",
        "tumbling": (
            "SELECT date_bin('1 hour', at, '2000-01-01') AS window_start, count(*) AS n FROM "
            "orders GROUP BY 1;"
        ),
        "hopping": (
            "SELECT window_start, avg(price) AS mean FROM orders, "
            "generate_series(date_trunc('hour', at), at, INTERVAL '5 minutes') AS window_start "
            "GROUP BY window_start;"
        ),
        "session": "SELECT customer, count(*) AS n FROM orders GROUP BY customer, session(at);",
        "totals": (
            "CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(price) AS total FROM orders "
            "GROUP BY customer;"
        ),
        "latest_of_each": (
            "SELECT DISTINCT ON (customer) customer, id, price FROM orders ORDER BY customer, at DESC;"
        ),
        "top_three": (
            "SELECT city, id, price FROM (SELECT DISTINCT city FROM orders) c, LATERAL (SELECT "
            "id, price FROM orders WHERE city = c.city ORDER BY price DESC LIMIT 3);"
        ),
        "table_join": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer;",
        "within_five_minutes": (
            "SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.order_id AND p.paid "
            "BETWEEN o.at AND o.at + INTERVAL '5 minutes';"
        ),
        "last_ten_minutes": (
            "SELECT count(DISTINCT customer) AS customers FROM orders WHERE mz_now() <= at + "
            "INTERVAL '10 minutes';"
        ),
    },
    "risingwave": {
        "selection": "SELECT id, price FROM orders WHERE price > 100;",
        "tumbling": (
            "CREATE MATERIALIZED VIEW hourly AS SELECT window_start, window_end, COUNT(*) AS n "
            "FROM TUMBLE(orders, at, INTERVAL '1 HOUR') GROUP BY window_start, window_end;"
        ),
        "hopping": (
            "SELECT window_start, window_end, AVG(price) AS mean FROM HOP(orders, at, INTERVAL "
            "'5 MINUTES', INTERVAL '1 HOUR') GROUP BY window_start, window_end;"
        ),
        "session": (
            "SELECT customer, at, COUNT(*) OVER (PARTITION BY customer ORDER BY at SESSION WITH "
            "GAP INTERVAL '10 MINUTES') AS n FROM orders;"
        ),
        "totals": (
            "CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(price) AS total FROM orders "
            "GROUP BY customer;"
        ),
        "latest_of_each": (
            "SELECT customer, id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer "
            "ORDER BY at DESC) AS rn FROM orders) AS r WHERE rn = 1;"
        ),
        "top_three": (
            "SELECT city, id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER "
            "BY price DESC) AS rn FROM orders) AS r WHERE rn <= 3;"
        ),
        "table_join": (
            "SELECT o.id, c.name FROM orders o LEFT JOIN customers FOR SYSTEM_TIME AS OF "
            "PROCTIME() c ON o.customer = c.customer;"
        ),
        "within_five_minutes": (
            "SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.order_id AND p.paid "
            "BETWEEN o.at AND o.at + INTERVAL '5 MINUTES';"
        ),
        "last_ten_minutes": (
            "SELECT COUNT(DISTINCT customer) AS customers FROM orders WHERE at > NOW() - "
            "INTERVAL '10 MINUTES';"
        ),
    },
    "postgres": {
        "selection": "SELECT id, price FROM orders WHERE price > 100;",
        "tumbling": "SELECT date_trunc('hour', at) AS window_start, count(*) AS n FROM orders GROUP BY 1;",
        "hopping": (
            "SELECT h AS window_end, avg(price) AS mean FROM orders, "
            "generate_series(date_trunc('hour', at), at + interval '1 hour', interval '5 "
            "minutes') AS h GROUP BY h;"
        ),
        "session": (
            "SELECT customer, count(*) AS n FROM (SELECT *, sum(new) OVER (PARTITION BY customer "
            "ORDER BY at) AS session FROM (SELECT *, coalesce(at - lag(at) OVER (PARTITION BY "
            "customer ORDER BY at) > interval '10 minutes', true)::int AS new FROM orders) a) b "
            "GROUP BY customer, session;"
        ),
        "totals": (
            "CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(price) AS total FROM orders "
            "GROUP BY customer;"
        ),
        "latest_of_each": (
            "SELECT DISTINCT ON (customer) customer, id, price FROM orders ORDER BY customer, at DESC;"
        ),
        "top_three": (
            "SELECT city, id, price FROM (SELECT *, row_number() OVER (PARTITION BY city ORDER "
            "BY price DESC) AS rn FROM orders) r WHERE rn <= 3;"
        ),
        "table_join": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer;",
        "within_five_minutes": (
            "SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.order_id AND p.paid "
            "BETWEEN o.at AND o.at + interval '5 minutes';"
        ),
        "last_ten_minutes": (
            "SELECT count(DISTINCT customer) AS customers FROM orders WHERE at > now() - "
            "interval '10 minutes';"
        ),
    },
}
