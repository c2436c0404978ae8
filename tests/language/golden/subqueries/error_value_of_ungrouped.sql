SELECT carrier, (SELECT MAX(wind) FROM weather w WHERE w.dest = f.dest) FROM flights f GROUP BY carrier
