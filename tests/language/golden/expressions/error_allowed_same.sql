SELECT dest FROM flights WITH (max_fn = 0.1, max_fn = 0.1)
