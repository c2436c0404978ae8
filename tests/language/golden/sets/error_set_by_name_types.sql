SELECT dest AS a FROM flights UNION BY NAME SELECT wind AS a FROM weather
