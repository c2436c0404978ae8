SELECT ABS(delay) OVER (ORDER BY ts) FROM flights
