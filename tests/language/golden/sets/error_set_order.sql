SELECT carrier FROM flights LIMIT 3 UNION SELECT dest FROM flights
