SELECT carrier FROM flights WHERE delay > ANY (SELECT wind, dest FROM weather)
