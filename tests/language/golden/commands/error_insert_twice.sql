INSERT INTO weather (dest, dest) VALUES ('LAX', 'SFO')
