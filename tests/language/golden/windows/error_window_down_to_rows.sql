SELECT dest FROM flights [ROWS 5 DOWN TO 2]
