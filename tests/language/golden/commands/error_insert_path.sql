INSERT INTO weather (dest) VALUES ('LAX'
