SELECT dest FROM flights WITH (max_fp = 2)
