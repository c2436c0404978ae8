SELECT carrier FROM flights [RANGE 1 HOUR WHERE delay > 30] WHERE dest = 'JFK'
