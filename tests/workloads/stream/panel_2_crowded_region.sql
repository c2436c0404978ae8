SELECT d.region, COUNT(DISTINCT r.sensor) AS sensors
FROM reading [RANGE 1 MINUTE] r
JOIN device d ON d.sensor = r.sensor
WHERE d.kind = 'A'
GROUP BY d.region
HAVING COUNT(DISTINCT r.sensor) > 20
