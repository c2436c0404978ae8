SELECT dest FROM flights UNION DISTINCT BY NAME SELECT wind, dest FROM weather ORDER BY wind
