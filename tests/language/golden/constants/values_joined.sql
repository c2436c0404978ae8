SELECT f.carrier, v.y FROM flights f LEFT JOIN (VALUES ('AA', 1), ('UA', 2)) AS v (x, y) ON f.carrier = v.x AND f.flight > v.y
