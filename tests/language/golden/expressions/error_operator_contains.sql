SELECT carrier FROM flights WHERE (carrier CONTAINS 'x')
