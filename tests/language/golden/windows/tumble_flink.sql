SELECT window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end
