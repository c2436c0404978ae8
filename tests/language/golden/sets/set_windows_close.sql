SELECT window_end, carrier FROM TUMBLE(flights, 1 HOUR) EXCEPT SELECT window_end, dest FROM TUMBLE(weather, 1 HOUR) EMIT CHANGES ON WINDOW CLOSE
