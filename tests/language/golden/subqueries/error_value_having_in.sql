SELECT carrier, (SELECT MAX(wind) FROM weather w WHERE w.dest = f.dest HAVING MAX(wind) IN (SELECT delay FROM flights)) FROM flights f
