VALUES (1), (1, 2)
