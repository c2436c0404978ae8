SELECT from FROM flights
