SELECT dest, carrier FROM flights EXCEPT ALL ON (dest, "dest") SELECT dest FROM flights
