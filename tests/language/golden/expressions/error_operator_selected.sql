SELECT ts @> 5, carrier FROM flights
