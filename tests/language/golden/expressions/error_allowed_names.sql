SELECT carrier FROM flights WITH (max_fnn = 0.1, roundish = 3)
