SELECT carrier FROM flights a WHERE EXISTS (SELECT 1 FROM flights b WHERE b.carrier = a.carrier AND b.dest IN (SELECT dest FROM flights WHERE cancelled))
