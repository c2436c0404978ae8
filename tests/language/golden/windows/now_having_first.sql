SELECT carrier FROM flights GROUP BY carrier HAVING NOW() - MIN(ts) >= INTERVAL '5' MINUTE AND COUNT(*) > 2
