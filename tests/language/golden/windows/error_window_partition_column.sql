SELECT carrier FROM flights [PARTITION BY career ROWS 5]
