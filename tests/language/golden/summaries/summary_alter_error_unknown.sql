ALTER SUMMARY item SET (theta = 0.5)
