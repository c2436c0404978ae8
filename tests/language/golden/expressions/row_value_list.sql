SELECT carrier FROM flights WHERE (carrier, dest) IN (('AA', 'JFK'))
