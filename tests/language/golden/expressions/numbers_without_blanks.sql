SELECT 1e0+2 AS a, 0.1e0+0.2e0 AS b, 2e3-1 AS c, delay*1e0+1e-1-2e+1 AS d, 1e1-.5e1+3e0*-2e0-1 AS e, 4e0--a comment
-1 AS f FROM flights
