INSERT INTO weather (dest) VALUES (?)
