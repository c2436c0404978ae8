SELECT delay FROM flights EXCEPT ALL ON (delay) SELECT carrier AS delay FROM flights
