SELECT carrier FROM flights WHERE dest IN (SELECT dest, carrier FROM flights)
