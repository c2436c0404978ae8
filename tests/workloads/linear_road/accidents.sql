WITH stopped AS (
    SELECT vid, MIN(xway) AS xway, MIN(dir) AS dir, MIN(seg) AS seg, MIN(pos) AS pos
    FROM report [PARTITION BY vid ROWS 4]
    GROUP BY vid
    HAVING COUNT(*) = 4 AND COUNT(DISTINCT pos) = 1 AND COUNT(DISTINCT lane) = 1
)
SELECT DISTINCT a.xway, a.dir, a.seg
FROM stopped a
JOIN stopped b ON a.xway = b.xway AND a.dir = b.dir AND a.pos = b.pos AND a.vid < b.vid
