INSERT INTO weather (ts, dest) SELECT window_end, dest FROM TUMBLE(flights, 1 HOUR) GROUP BY window_end, dest EMIT CHANGES WITH (snapshot = false)
