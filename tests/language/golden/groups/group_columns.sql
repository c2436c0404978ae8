SELECT carrier, dest, COUNT(*) AS n FROM flights GROUP BY carrier, dest
