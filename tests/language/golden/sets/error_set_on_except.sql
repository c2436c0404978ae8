SELECT carrier FROM flights EXCEPT ON (carrier) SELECT carrier FROM flights
