-- What each car paid: the toll of each segment, as of the instant at which the car entered it.
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
), entered AS (
    SELECT ISTREAM(vid, xway, dir, seg) FROM report [PARTITION BY vid ROWS 1] WHERE type = 0
)
SELECT vid, SUM(toll) AS balance
FROM (
    SELECT e.vid, e.seg, 2 * (v.cars - 50) * (v.cars - 50) AS toll
    FROM entered [NOW] e
    JOIN volume v ON v.xway = e.xway AND v.dir = e.dir AND v.seg = e.seg
    JOIN speed s ON s.xway = e.xway AND s.dir = e.dir AND s.seg = e.seg
    WHERE s.lav < 40 AND v.cars > 50
) [UNBOUNDED]
GROUP BY vid
