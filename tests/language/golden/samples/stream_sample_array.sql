SELECT * FROM (SELECT ARRAY_AGG(carrier) AS all_of FROM flights) SAMPLE(10)
