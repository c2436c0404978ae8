SELECT * FROM planes [ROWS 5]
