SELECT * FROM flights f [PARTITION BY carrier, f.dest ROWS 3]
