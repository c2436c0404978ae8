SELECT MAX(delay) OVER (ORDER BY a) FROM (SELECT ARRAY_AGG(delay) AS a, MAX(delay) AS delay FROM flights)
