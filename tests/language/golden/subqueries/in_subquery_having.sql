SELECT carrier, COUNT(*) FROM flights GROUP BY carrier HAVING COUNT(*) > 2 AND carrier IN (SELECT carrier FROM flights WHERE cancelled)
