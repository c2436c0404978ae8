CREATE MATERIALIZED VIEW IF NOT EXISTS busiest AS SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier EMIT CHANGES INTO busiest WITH (format = 'diff')
