SELECT SUM(delay) OVER (w ORDER BY delay) FROM flights WINDOW w AS (ORDER BY ts)
