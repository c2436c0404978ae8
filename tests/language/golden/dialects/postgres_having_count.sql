SELECT carrier, COUNT(*) FROM flights GROUP BY carrier HAVING count > 5
