SELECT carrier FROM flights EXCEPT ALL ON (carrier) SELECT dest FROM flights
