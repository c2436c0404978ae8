SELECT c.carrier, n, wind FROM (SELECT carrier, dest, COUNT(*) AS n FROM flights GROUP BY carrier, dest) c
JOIN (SELECT dest, MAX(wind) AS wind FROM weather [RANGE 1 HOUR] GROUP BY dest) w ON c.dest = w.dest WHERE n > 3 AND wind > 10
