SELECT p.model, COUNT(*) AS n, AVG(f.delay) AS late FROM flights [RANGE 1 DAY] f JOIN planes p ON f.flight = p.flight
WHERE f.cancelled GROUP BY p.model HAVING COUNT(*) > 5 ORDER BY late DESC LIMIT 3
