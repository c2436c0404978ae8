SELECT carrier, COUNT(*) AS count FROM flights GROUP BY carrier HAVING count > 5
