SELECT carrier FROM flights WHERE dest IN (SELECT delay FROM flights)
