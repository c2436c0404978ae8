SELECT * FROM carriers [ROWS 10]
