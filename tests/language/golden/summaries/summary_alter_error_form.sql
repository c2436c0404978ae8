ALTER SUMMARY items1 theta = 0.5
