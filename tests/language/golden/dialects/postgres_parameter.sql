SELECT * FROM flights WHERE flight = $1
