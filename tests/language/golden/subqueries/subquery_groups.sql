SELECT MAX(n) AS most FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) WHERE n > 1
