CREATE SUMMARY x ON flights (cancelled) WITH GRANULARITY 1 MINUTE AND COLLAPSE(2, 2) SETTINGS (bucket_function = 'range')
