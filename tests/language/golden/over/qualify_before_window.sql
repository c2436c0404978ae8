SELECT carrier FROM flights QUALIFY RANK() OVER w < 3 WINDOW w AS (ORDER BY delay)
