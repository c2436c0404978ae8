WITH a AS (SELECT dest FROM flights), b (x) AS (SELECT dest FROM a UNION SELECT dest FROM weather) SELECT dest FROM a EXCEPT SELECT x FROM b
