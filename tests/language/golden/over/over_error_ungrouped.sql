SELECT carrier, SUM(delay) OVER (ORDER BY carrier) FROM flights GROUP BY carrier
