SELECT * FROM (SELECT carrier FROM flights
