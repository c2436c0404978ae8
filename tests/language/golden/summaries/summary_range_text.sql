CREATE SUMMARY x ON flights (carrier) WITH GRANULARITY 1m AND COLLAPSE(2, 2) SETTINGS (bucket_function = 'range')
