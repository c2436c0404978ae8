SELECT MAP_AGG(DISTINCT dest, delay) FROM flights
