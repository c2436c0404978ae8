WITH late AS (SELECT dest, delay FROM flights WHERE delay > 5) SELECT ISTREAM(*) FROM late EMIT CHANGES
