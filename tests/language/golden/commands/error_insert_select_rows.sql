CREATE QUERY w AS INSERT INTO weather (ts, dest) VALUES (1, 'a')
