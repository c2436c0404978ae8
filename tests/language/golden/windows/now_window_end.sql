SELECT window_end, COUNT(*) AS n FROM TUMBLE(flights, INTERVAL '1' MINUTE) WHERE window_end > NOW() - INTERVAL '1' HOUR GROUP BY window_end
