SELECT x.window_end, COUNT(*) AS n FROM TUMBLE(flights, 1 HOUR) x JOIN TUMBLE(weather, 1 HOUR) y
ON x.dest = y.dest AND x.window_end = y.window_end GROUP BY x.window_end
