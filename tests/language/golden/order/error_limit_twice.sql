SELECT carrier FROM flights LIMIT 5 LIMIT 6
