CREATE STREAM hourly AS SELECT window_end, carrier, COUNT(*) AS n FROM TUMBLE(flights, INTERVAL '1' HOUR) GROUP BY window_end, carrier HAVING COUNT(*) > 3
