ISTREAM (SELECT dest FROM flights WITH (max_fn = 0.1))
