SELECT carrier, dest, SUM(delay) AS s, GROUPING(carrier, dest) AS g FROM flights [RANGE 1 HOUR] WHERE delay > 3 GROUP BY ROLLUP (carrier, dest) HAVING COUNT(*) > 1 ORDER BY s LIMIT 3
