SELECT 1e0+2e3x AS a FROM flights
