SELECT 1 + 1 AS two, 'x' AS x
