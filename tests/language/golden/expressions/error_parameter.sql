SELECT * FROM flights WHERE delay > ?
