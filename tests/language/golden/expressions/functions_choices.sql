SELECT COALESCE(delay, 0), NULLIF(flight, 3), GREATEST(flight, distance, 2.5), LEAST(day, ts) FROM flights
