SELECT carrier, dest, COUNT(*) FROM flights GROUP BY carrier, dest WITH ROLLUP
