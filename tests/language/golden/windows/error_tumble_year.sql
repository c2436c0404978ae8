SELECT window_end, COUNT(*) AS n FROM TUMBLE(flights, INTERVAL '1' YEAR) GROUP BY window_end
