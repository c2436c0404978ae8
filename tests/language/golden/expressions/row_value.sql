SELECT carrier FROM flights WHERE (carrier, dest) = ('AA', 'JFK')
