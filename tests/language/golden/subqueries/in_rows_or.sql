SELECT carrier FROM flights WHERE delay > 60 OR (dest, day) NOT IN (SELECT dest, day FROM weather)
