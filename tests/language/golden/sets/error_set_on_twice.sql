SELECT dest, carrier FROM flights EXCEPT ALL ON (dest, carrier, Dest) SELECT dest, carrier FROM flights
