SELECT dest, COUNT(*) FROM flights [RANGE 1 HOUR] GROUP BY dest ORDER BY dest LIMIT 5 WITH (max_fp = 0.02, max_fn = 0.1, max_error = 0.05, weight = 3)
