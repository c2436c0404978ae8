SELECT * EXCEPT (carrier) REPLACE (delay * 2 AS delay) RENAME (dest AS airport) FROM flights
