SELECT carrier, SUM(ts - day) AS s, AVG(ts - day) AS a, MAX(ts - day) AS m, COUNT(ts - day) AS n FROM flights GROUP BY carrier HAVING SUM(ts - day) > INTERVAL '1' HOUR
