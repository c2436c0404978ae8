SELECT UPPER(dest) FILTER (WHERE delay > 1) FROM flights
