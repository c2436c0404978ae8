SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '1' MINUTE) GROUP BY k, window_end
