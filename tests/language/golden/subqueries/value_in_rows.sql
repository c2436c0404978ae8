SELECT carrier FROM flights WHERE delay > 3 OR (carrier, dest) IN (SELECT carrier, dest FROM flights)
