SELECT * FROM (SELECT carrier, delay FROM flights WHERE delay > 3) [ROWS 5] WHERE carrier = 'AA'
