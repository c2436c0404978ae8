SELECT carrier, COUNT(*) AS n FROM SESSION(flights PARTITION BY carrier, INTERVAL '5' MINUTES) WHERE delay > 30 GROUP BY carrier, window_end
