SELECT a.sensor AS a, b.sensor AS b, c.sensor AS c
FROM reading [RANGE 10 SECONDS] a
JOIN reading [RANGE 10 SECONDS] b
ON a.sensor < b.sensor AND ABS(a.x - b.x) <= 5 AND ABS(a.y - b.y) <= 5
JOIN reading [RANGE 10 SECONDS] c
ON b.sensor < c.sensor AND ABS(a.x - c.x) <= 5 AND ABS(a.y - c.y) <= 5
    AND ABS(b.x - c.x) <= 5 AND ABS(b.y - c.y) <= 5
