SELECT carrier FROM SESSION(flights PARTITION BY carrier, dest, ts, 5 MINUTES)
