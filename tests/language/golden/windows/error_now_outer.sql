SELECT f.carrier FROM flights f LEFT JOIN weather w ON f.dest = w.dest WHERE w.ts > NOW() - INTERVAL '2' HOUR
