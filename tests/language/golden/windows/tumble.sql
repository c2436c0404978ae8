SELECT carrier, window_start, window_end FROM TUMBLE(flights, INTERVAL '1' MINUTE)
