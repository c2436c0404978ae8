SELECT 1 FROM flights WHERE (dest, carrier) NOT IN (('a', 'b'), ('c', 'd')) AND (flight, delay) <> (1, 2)
