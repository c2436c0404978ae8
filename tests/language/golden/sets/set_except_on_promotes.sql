SELECT flight, carrier FROM flights EXCEPT ALL ON (flight, carrier) SELECT delay AS flight, dest AS carrier FROM flights
