DSTREAM (WITH late AS (SELECT dest FROM flights WHERE delay > 5) SELECT * FROM late [ROWS 5]);
