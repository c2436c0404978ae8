SELECT carrier FROM flights a WHERE delay IN (SELECT b.delay FROM flights b WHERE b.carrier = a.carrier AND b.cancelled)
