SELECT * FROM (SELECT carrier, delay FROM flights WHERE delay > 3) late [RANGE 10 MINUTES] WHERE late.carrier = 'AA'
