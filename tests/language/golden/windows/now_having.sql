SELECT carrier FROM flights GROUP BY carrier HAVING MAX(ts) > NOW() - INTERVAL '1' HOUR
