SELECT ts - ts FROM flights
