SELECT * FROM flights WHERE delay AND cancelled
