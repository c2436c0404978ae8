SELECT dest, day FROM flights GROUP BY dest, day HAVING COUNT(*) > 1 OR (dest, day) IN (SELECT dest, day FROM weather)
