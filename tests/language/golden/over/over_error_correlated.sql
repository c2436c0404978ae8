SELECT carrier FROM flights a WHERE EXISTS (SELECT RANK() OVER (ORDER BY ts) FROM flights b WHERE b.carrier = a.carrier)
