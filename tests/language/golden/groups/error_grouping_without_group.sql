SELECT GROUPING(delay) FROM flights
