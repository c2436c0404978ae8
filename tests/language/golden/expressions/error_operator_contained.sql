SELECT * FROM flights WHERE tags <@ ARRAY['x']
