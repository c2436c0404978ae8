SELECT EXTRACT(fortnight FROM ts) FROM flights
