SELECT dest, MAX(ts) AS last FROM flights WHERE delay > 3 GROUP BY dest HAVING MAX(ts) < NOW() - INTERVAL '5' MINUTE
