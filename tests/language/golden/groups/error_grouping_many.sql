SELECT COUNT(*) FROM flights GROUP BY CUBE (carrier, dest, day, ts), ROLLUP (delay, price, distance, flight)
