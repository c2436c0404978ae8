SELECT * FROM flights WHERE ts > NOW() - 1000
