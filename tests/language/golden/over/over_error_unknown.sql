SELECT LAGG(delay) OVER (ORDER BY ts) FROM flights
