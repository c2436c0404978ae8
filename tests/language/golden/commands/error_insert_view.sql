INSERT INTO carriers VALUES ('AA', 1, 2)
