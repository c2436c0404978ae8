SELECT dest FROM flights WITH (max_error = 0)
