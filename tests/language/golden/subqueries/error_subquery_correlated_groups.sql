SELECT carrier FROM flights a WHERE EXISTS (SELECT COUNT(*) FROM flights b WHERE b.carrier = a.carrier)
