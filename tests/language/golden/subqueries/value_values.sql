SELECT carrier FROM flights WHERE delay > (VALUES (1))
