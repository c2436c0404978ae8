INSERT INTO weather SELECT * FROM weather
