SELECT carrier FROM flights a WHERE EXISTS (SELECT * FROM flights b WHERE b.carrier = a.carrier AND b.delay > 60)
