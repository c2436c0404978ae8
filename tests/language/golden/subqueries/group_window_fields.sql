SELECT w.start AS hour, carrier, n FROM (SELECT carrier, TUMBLE(INTERVAL '1' HOUR) AS w, COUNT(*) AS n FROM flights GROUP BY 1, 2) WHERE w.end > TIMESTAMP '2013-01-01'
