SELECT carrier FROM flights LIMIT delay
