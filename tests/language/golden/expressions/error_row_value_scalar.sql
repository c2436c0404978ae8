SELECT 1 FROM flights WHERE (dest, carrier) = 'a'
