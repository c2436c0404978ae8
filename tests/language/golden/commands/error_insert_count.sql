INSERT INTO weather (dest, wind) VALUES ('LAX', 3.5), ('SFO')
