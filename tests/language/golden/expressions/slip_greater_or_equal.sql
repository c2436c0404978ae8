SELECT * FROM flights WHERE delay => 5
