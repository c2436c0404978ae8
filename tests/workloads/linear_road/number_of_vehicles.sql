SELECT window_start, xway, dir, seg, COUNT(DISTINCT vid) AS cars
FROM TUMBLE(report, INTERVAL '1' MINUTE)
GROUP BY window_start, xway, dir, seg
