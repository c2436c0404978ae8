SELECT s.v, t.name FROM s [RANGE 10 SECONDS] JOIN t ON s.k = t.k
