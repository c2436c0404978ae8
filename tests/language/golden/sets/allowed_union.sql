SELECT dest FROM flights UNION SELECT dest FROM weather WITH (max_fp = 0, max_fn = 1)
