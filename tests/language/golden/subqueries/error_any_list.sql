SELECT carrier FROM flights WHERE delay > ANY (1, 2)
