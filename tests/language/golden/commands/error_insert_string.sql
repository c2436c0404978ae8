INSERT INTO weather (dest, wind) VALUES (TRUE, 3.5)
