SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > ALL (SELECT wind FROM weather)
