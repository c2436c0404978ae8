SELECT carrier FROM flights WHERE delay > 3 OR dest IN (SELECT dest FROM flights)
