SELECT carrier FROM flights WHERE delay = (SELECT MAX(delay) FROM flights WHERE delay < (SELECT MAX(delay) FROM flights))
