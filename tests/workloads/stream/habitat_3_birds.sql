SELECT e.kind, r.sensor, r.light
FROM event [NOW] e
JOIN reading [PARTITION BY sensor ROWS 1] r
ON (r.x - e.x) * (r.x - e.x) + (r.y - e.y) * (r.y - e.y) < 100
WHERE e.kind = 'bird'
