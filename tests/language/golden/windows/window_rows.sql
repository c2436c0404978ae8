SELECT * FROM flights f [ROWS 100]
