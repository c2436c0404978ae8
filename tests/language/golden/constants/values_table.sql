SELECT model FROM planes WHERE flight IN (VALUES (1), (2))
