SELECT * FROM DSTREAM (SELECT a.carrier, b.wind FROM flights [RANGE 1 HOUR] a, weather [ROWS 5] b WHERE a.dest = b.dest) [RANGE 10 MINUTES SLIDE 1 MINUTE WHERE wind > 3] x
