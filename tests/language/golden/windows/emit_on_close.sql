SELECT window_end, carrier, COUNT(*) AS n FROM TUMBLE(flights, INTERVAL '1' MINUTE) GROUP BY window_end, carrier
EMIT CHANGES INTO counts ON WINDOW CLOSE
