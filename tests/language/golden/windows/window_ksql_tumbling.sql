SELECT carrier, COUNT(*) AS n, window_end FROM flights WINDOW TUMBLING (SIZE 1 HOUR) WHERE delay > 3 GROUP BY carrier EMIT CHANGES
