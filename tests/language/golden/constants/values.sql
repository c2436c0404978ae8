VALUES (1, 'a'), (2.5, NULL)
