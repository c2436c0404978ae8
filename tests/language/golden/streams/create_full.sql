CREATE STREAM IF NOT EXISTS Trips (id STRING NOT NULL, n BIGINT NULL, x DOUBLE PRECISION, m NUMERIC(9, 3), ok BOOL, d DATE, t TIMESTAMP(3) NOT NULL)
WITH (topic = 'trips.v1', timestamp = 't', lateness = '5 seconds', idle_timeout = INTERVAL '1' MINUTE, idle_advances = true, future_max = 2 HOURS, partitions = 4)
RETAIN 7 DAYS
