SELECT a.v, s.v AS third FROM (SELECT s.v, s.k FROM s ASOF JOIN u ON s.k = u.k AND s.ts >= u.ts) AS a JOIN s ON a.k = s.k
