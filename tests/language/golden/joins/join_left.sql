SELECT f.carrier, wind FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND f.delay > 30 AND wind > 20
WHERE f.flight < 9 AND wind IS NULL
