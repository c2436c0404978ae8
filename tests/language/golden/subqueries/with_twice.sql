WITH late AS (SELECT carrier FROM flights WHERE delay > 15) SELECT carrier, COUNT(*) FROM late WHERE carrier IN (SELECT carrier FROM late GROUP BY carrier HAVING COUNT(*) > 5) GROUP BY carrier
