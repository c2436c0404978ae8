SELECT carrier FROM flights [ROWS 10 SLIDE 5]
