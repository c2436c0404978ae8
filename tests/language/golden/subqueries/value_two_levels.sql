SELECT carrier, (SELECT MAX(wind) FROM weather w WHERE wind > (SELECT AVG(wind) FROM weather x WHERE x.dest = f.dest)) FROM flights f
