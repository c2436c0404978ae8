SELECT day + 1 AS a FROM flights
