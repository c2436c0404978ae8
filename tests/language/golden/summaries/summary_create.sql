CREATE SUMMARY IF NOT EXISTS delays ON flights (delay) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)
SETTINGS (theta = 0.5, kind = 'histogram', bucket_function = 'range', zone_length_max = '2 seconds')
