WITH late AS (SELECT * FROM flights WHERE delay > 30) SELECT carrier, window_end FROM SESSION(late, INTERVAL '5' MINUTES)
