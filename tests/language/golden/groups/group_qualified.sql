SELECT f.carrier, COUNT(*) FROM flights f GROUP BY carrier HAVING MAX(f.delay) > 3
