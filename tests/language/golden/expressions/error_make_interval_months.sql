SELECT MAKE_INTERVAL(months => 1) FROM flights
