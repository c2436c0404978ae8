SELECT (ts - day) + 5 FROM flights
