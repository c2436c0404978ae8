SELECT dest, delay FROM flights UNION ALL BY NAME SELECT wind, dest FROM weather
