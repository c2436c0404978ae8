SELECT * FROM flights /* WHERE delay > 1
