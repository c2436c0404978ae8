SELECT COUNT(*) AS n FROM flights f GROUP BY carrier, f.dest
