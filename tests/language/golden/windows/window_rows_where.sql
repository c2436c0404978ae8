SELECT carrier FROM flights [ROWS 10 WHERE delay > 30 AND NOT cancelled] WHERE dest = 'JFK'
