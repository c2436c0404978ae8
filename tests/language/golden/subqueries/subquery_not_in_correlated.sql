SELECT carrier FROM flights a WHERE dest NOT IN (SELECT dest FROM flights b WHERE b.carrier = a.carrier)
