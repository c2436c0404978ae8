SELECT 1 FROM flights WHERE (dest, carrier) = (SELECT dest, carrier FROM flights)
