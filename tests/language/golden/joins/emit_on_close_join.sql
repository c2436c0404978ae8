SELECT a.dest, wind FROM TUMBLE(flights, INTERVAL '1' MINUTE) a
JOIN TUMBLE(weather, INTERVAL '1' MINUTE) b ON a.dest = b.dest AND a.window_end = b.window_end
EMIT CHANGES ON WINDOW CLOSE
