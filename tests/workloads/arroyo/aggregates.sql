-- As published.
SELECT MIN(counter) AS "min", MAX(counter) AS "max", SUM(counter) AS "sum", COUNT(*) AS "count", AVG(counter) AS "avg"
FROM impulse
