SELECT * FROM flights [LAST 10]
