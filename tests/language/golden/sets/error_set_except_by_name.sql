SELECT dest FROM flights EXCEPT BY NAME SELECT dest FROM weather
