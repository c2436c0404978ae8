SELECT * FROM flights UNION CORRESPONDING BY (dest, wind) SELECT * FROM weather
