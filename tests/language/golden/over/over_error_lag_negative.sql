SELECT LAG(delay, -1) OVER (ORDER BY ts) FROM flights
