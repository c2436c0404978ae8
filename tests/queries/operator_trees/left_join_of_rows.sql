SELECT a.v, b.v AS other FROM s [ROWS 10] AS a LEFT JOIN u [ROWS 10] AS b ON a.k = b.k AND a.v < b.v
