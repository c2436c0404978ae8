-- As published.
SELECT counter % 5 AS counter_mod, MIN(counter) AS "min", MAX(counter) AS "max", SUM(counter) AS "sum",
    COUNT(*) AS "count", AVG(counter) AS "avg"
FROM impulse
GROUP BY 1
