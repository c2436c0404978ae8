SELECT carrier FROM flights WHERE delay > 2 AND delay > (SELECT AVG(delay) FROM flights)
