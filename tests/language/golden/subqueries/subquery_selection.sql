SELECT twice + 1 AS x FROM (SELECT delay * 2 AS twice, carrier FROM flights [RANGE 1 HOUR] WHERE carrier = 'AA') WHERE twice > 7
