SELECT carrier FROM flights WHERE COUNT(*) > 1
