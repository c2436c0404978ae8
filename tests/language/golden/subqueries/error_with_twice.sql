WITH late AS (SELECT * FROM flights), other AS (SELECT * FROM late), LATE AS (SELECT * FROM flights)
SELECT * FROM late
