SELECT count( * ) AS late FROM flights [RANGE 1 HOUR]
