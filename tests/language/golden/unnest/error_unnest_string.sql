SELECT x FROM flights, UNNEST(dest) AS x
