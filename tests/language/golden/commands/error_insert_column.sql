INSERT INTO weather (dest, winds) VALUES ('LAX', 3.5)
