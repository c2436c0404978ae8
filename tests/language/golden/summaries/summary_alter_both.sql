ALTER SUMMARY items1 SET (zone_rows_min = 100, theta = 0)
