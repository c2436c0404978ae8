SELECT ts + '5 minutes' FROM flights
