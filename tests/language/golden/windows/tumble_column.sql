SELECT * FROM TUMBLE(flights, ts, 1 HOUR, 15 MINUTES) t WHERE t.delay > 30 AND t.window_end < TIMESTAMP '2014-01-01'
