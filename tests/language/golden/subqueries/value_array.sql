SELECT carrier, (SELECT ARRAY_AGG(wind) FROM weather) FROM flights
