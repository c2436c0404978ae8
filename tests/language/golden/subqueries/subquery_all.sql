SELECT carrier FROM flights WHERE delay > ALL (SELECT delay FROM flights)
