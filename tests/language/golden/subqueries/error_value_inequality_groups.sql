SELECT dest FROM flights GROUP BY dest HAVING COUNT(*) > (SELECT MAX(wind) FROM weather w WHERE w.dest < flights.dest)
