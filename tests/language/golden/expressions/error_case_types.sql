SELECT CASE WHEN cancelled THEN 1 ELSE 'x' END FROM flights
