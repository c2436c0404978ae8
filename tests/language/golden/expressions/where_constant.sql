SELECT dest FROM flights WHERE 60 * 2 < delay AND 1 = 1 AND LOWER('JFK') = 'jfk'
