SELECT carrier, dest, day, COUNT(*) FROM flights GROUP BY carrier, CUBE (dest), GROUPING SETS (day, ())
