-- As published.
SELECT * FROM cars
