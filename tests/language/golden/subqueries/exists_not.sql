SELECT carrier FROM flights a WHERE NOT EXISTS (SELECT 1 FROM flights [ROWS 100] b WHERE a.carrier = b.carrier AND UPPER(b.dest) = a.dest)
