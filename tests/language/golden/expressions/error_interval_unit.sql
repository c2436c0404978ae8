SELECT ts + INTERVAL '1 fortnight' FROM flights
