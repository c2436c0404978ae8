SELECT ROWTIME, carrier FROM flights
