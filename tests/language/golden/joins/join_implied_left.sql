SELECT f.delay, wind FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND w.dest = 'ORD' WHERE f.dest IN ('JFK', 'ORD')
