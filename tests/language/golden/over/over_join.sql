SELECT a.delay, AVG(b.delay) OVER (PARTITION BY a.carrier) FROM flights [ROWS 5] a JOIN flights [ROWS 5] b ON a.carrier = b.carrier
