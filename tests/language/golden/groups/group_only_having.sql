SELECT MAX(delay) FROM flights HAVING COUNT(*) > 10
