SELECT carrier FROM flights WHERE ts > NOW(3)
