SELECT n FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) WHERE carrier IN (SELECT carrier FROM flights WHERE cancelled)
