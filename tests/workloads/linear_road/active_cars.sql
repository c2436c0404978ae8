-- The last report of each car that reported within 30 seconds.
SELECT vid, seg, dir, xway, lane
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY vid ORDER BY ts DESC) AS back FROM report [RANGE 30 SECONDS])
WHERE back = 1
