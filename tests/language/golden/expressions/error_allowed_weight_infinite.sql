SELECT dest FROM flights WITH (weight = 1e999)
