-- Of the minute that closed last: slow and full segments, but where an accident is at most 4 segments ahead.
WITH speed AS (
    SELECT xway, dir, seg, AVG(speed) AS lav
    FROM (
        SELECT xway, dir, seg, vid, AVG(spd) AS speed
        FROM report [RANGE 5 MINUTES SLIDE 1 MINUTE]
        GROUP BY xway, dir, seg, vid
    )
    GROUP BY xway, dir, seg
), volume AS (
    SELECT xway, dir, seg, COUNT(DISTINCT vid) AS cars
    FROM TUMBLE(report, INTERVAL '1' MINUTE) [RANGE 59999 MILLISECONDS]
    GROUP BY xway, dir, seg
), stopped AS (
    SELECT vid, MIN(xway) AS xway, MIN(dir) AS dir, MIN(seg) AS seg, MIN(pos) AS pos
    FROM report [PARTITION BY vid ROWS 4]
    GROUP BY vid
    HAVING COUNT(*) = 4 AND COUNT(DISTINCT pos) = 1 AND COUNT(DISTINCT lane) = 1
), accidents AS (
    SELECT DISTINCT a.xway, a.dir, a.seg
    FROM stopped a
    JOIN stopped b ON a.xway = b.xway AND a.dir = b.dir AND a.pos = b.pos AND a.vid < b.vid
)
SELECT v.xway, v.dir, v.seg, 2 * (v.cars - 50) * (v.cars - 50) AS toll
FROM volume v
JOIN speed s ON s.xway = v.xway AND s.dir = v.dir AND s.seg = v.seg
ANTI JOIN accidents a
ON a.xway = v.xway AND a.dir = v.dir
    AND ((v.dir = 0 AND a.seg BETWEEN v.seg AND v.seg + 4) OR (v.dir = 1 AND a.seg BETWEEN v.seg - 4 AND v.seg))
WHERE s.lav < 40 AND v.cars > 50
