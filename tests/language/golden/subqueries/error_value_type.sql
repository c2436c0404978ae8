SELECT carrier FROM flights WHERE delay > (SELECT MAX(dest) FROM weather)
