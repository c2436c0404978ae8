SELECT carrier FROM flights GROUP BY carrier HAVING FIRST(ts) < NOW()
