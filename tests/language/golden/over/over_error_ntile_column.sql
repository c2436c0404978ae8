SELECT NTILE(flight) OVER (ORDER BY ts) FROM flights
