SELECT dest FROM flights WITH (max_fn = 0.1) WITH (max_fp = 0.1)
