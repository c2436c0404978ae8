SELECT dest ~ '^J', dest !~* 'x.y', dest ~~ 'J%', E'a\tb\u00e9' FROM flights WHERE ROW(dest, carrier) = ('JFK', 'AA')
