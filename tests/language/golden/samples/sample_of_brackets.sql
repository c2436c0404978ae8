SELECT f.dest, p.model FROM (flights f LEFT JOIN planes p USING (flight)) SAMPLE(10 DOWN TO 5, 7) JOIN weather w ON w.dest = f.dest
