SELECT carrier FROM flights UNION ALL BY NAME SELECT carrier FROM flights
