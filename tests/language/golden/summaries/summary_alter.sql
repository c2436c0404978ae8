ALTER SUMMARY items1 SET (theta = 0.5)
