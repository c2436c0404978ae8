SELECT dest FROM flights EMIT CHANGES WITH (max_fn = 0.1)
