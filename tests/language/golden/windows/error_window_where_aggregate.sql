SELECT carrier FROM flights [ROWS 5 WHERE COUNT(*) > 3]
