SELECT a.v, b.v AS other FROM s [RANGE 10 SECONDS] AS a JOIN u [RANGE 5 SECONDS] AS b ON a.k = b.k WHERE b.v > 5
