SELECT carrier FROM flights GROUP BY carrier ORDER BY COUNT(*) DESC, carrier LIMIT 3
