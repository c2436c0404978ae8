SELECT * FROM flights [ROWS 0]
