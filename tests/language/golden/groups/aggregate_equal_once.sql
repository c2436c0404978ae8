SELECT COUNT(*), COUNT(*) + 1 AS more, SUM(delay) / COUNT(*) AS mean, SUM(delay) FROM flights HAVING COUNT(*) > 1 ORDER BY SUM(delay)
