SELECT carrier FROM flights UNION SELECT dest, delay FROM flights
