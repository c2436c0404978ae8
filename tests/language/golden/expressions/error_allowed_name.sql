SELECT dest FROM flights WITH (max_fnn = 1)
