SELECT delay - AVG(delay) OVER (PARTITION BY UPPER(dest)) AS off, RANK() OVER (ORDER BY delay * 2) + 1 AS r FROM flights ORDER BY RANK() OVER (ORDER BY delay)
