SELECT dest FROM flights WITH (weight = 0)
