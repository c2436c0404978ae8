SELECT STRFTIME(ts, '%Y-%Q') FROM flights
