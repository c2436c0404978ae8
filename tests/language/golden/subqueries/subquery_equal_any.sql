SELECT carrier FROM flights WHERE dest = SOME (SELECT dest FROM weather)
