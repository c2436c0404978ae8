SELECT carrier FROM flights GROUP BY carrier HAVING delay > 3
