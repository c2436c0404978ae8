SELECT dest FROM flights WHERE ROW(dest) = ROW('JFK')
