SELECT * FROM flights UNION CORRESPONDING BY (dest, dest) SELECT * FROM weather
