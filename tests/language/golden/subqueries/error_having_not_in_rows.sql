SELECT dest, carrier FROM flights GROUP BY dest, carrier HAVING (dest, carrier) NOT IN (SELECT dest, dest FROM weather)
