SELECT carrier FROM flights WHERE (carrier, dest) NOT IN (SELECT carrier, dest FROM flights)
