SELECT carrier, COUNT(*) FROM flights GROUP BY ALL
