SELECT flights.delay FROM flights f
