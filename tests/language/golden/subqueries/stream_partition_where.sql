SELECT carrier, n FROM (SELECT carrier, COUNT(*) AS n FROM flights [RANGE 1 HOUR] GROUP BY carrier) [PARTITION BY carrier ROWS 3 WHERE n > 1] c WHERE n > 2
