SELECT vid, MIN(xway) AS xway, MIN(dir) AS dir, MIN(seg) AS seg, MIN(pos) AS pos
FROM report [PARTITION BY vid ROWS 4]
GROUP BY vid
HAVING COUNT(*) = 4 AND COUNT(DISTINCT pos) = 1 AND COUNT(DISTINCT lane) = 1
