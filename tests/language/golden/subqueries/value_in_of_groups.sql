SELECT carrier, COUNT(*) AS n, CASE WHEN carrier IN (SELECT dest FROM weather) THEN 1 ELSE 0 END AS known FROM flights GROUP BY carrier
