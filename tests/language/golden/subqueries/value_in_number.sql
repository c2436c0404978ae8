SELECT carrier, ROW_NUMBER() OVER (ORDER BY (SELECT MAX(wind) FROM weather)) AS n, COUNT(*) FROM flights GROUP BY carrier
