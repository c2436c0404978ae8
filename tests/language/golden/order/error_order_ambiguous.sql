SELECT delay AS x, distance AS x FROM flights ORDER BY x
