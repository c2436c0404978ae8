SELECT carrier, ARRAY_AGG(delay) AS a FROM flights GROUP BY carrier ORDER BY a
