SELECT dest FROM flights WITH (max_fn = 'NaN')
