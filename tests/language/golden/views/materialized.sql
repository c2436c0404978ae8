CREATE MATERIALIZED VIEW busiest AS SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier
