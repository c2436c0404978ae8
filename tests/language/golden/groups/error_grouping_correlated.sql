SELECT 1 FROM flights f WHERE delay > (SELECT COUNT(*) FROM weather w WHERE w.dest = f.dest GROUP BY ROLLUP (w.day))
