SELECT flight div FROM flights
