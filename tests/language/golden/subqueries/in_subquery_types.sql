SELECT carrier FROM flights WHERE flight IN (SELECT MAX(distance) FROM flights GROUP BY carrier)
