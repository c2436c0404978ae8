SELECT carrier FROM flights EMIT CHANGES UNION SELECT dest FROM flights
