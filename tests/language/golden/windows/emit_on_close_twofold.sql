SELECT window_end, COUNT(*) AS n FROM TUMBLE(flights, INTERVAL '1' MINUTE) [RANGE 1 HOUR] GROUP BY window_end
EMIT CHANGES INTO counts EMIT ON WINDOW CLOSE WITH (encoding = 'json_schema')
