SELECT NOW() FROM flights
