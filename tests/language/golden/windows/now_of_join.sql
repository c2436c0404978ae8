SELECT f.carrier FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND w.ts > NOW() - INTERVAL '2' HOUR WHERE f.ts >= NOW() - INTERVAL '1' DAY
