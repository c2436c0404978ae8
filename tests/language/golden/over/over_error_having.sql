SELECT carrier FROM flights GROUP BY carrier HAVING RANK() OVER (ORDER BY carrier) < 3
