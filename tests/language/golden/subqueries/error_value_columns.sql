SELECT carrier FROM flights WHERE delay > (SELECT wind, day FROM weather)
