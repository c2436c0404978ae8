SELECT carrier FROM flights a WHERE EXISTS (SELECT a.delay FROM flights b WHERE b.carrier = a.carrier)
