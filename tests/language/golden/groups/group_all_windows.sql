SELECT window_start, dest, COUNT(*) FROM TUMBLE(flights, INTERVAL '1' HOUR) GROUP BY ALL
