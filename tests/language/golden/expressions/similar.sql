SELECT 1 FROM flights WHERE dest SIMILAR TO '(a|b)%_\%' AND dest NOT SIMILAR TO 'x.y'
