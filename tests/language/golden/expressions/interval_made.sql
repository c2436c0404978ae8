SELECT MAKE_INTERVAL(days => 1, hours => flight) AS a, DATE_BIN(MAKE_INTERVAL(mins => flight), ts) AS b FROM flights
