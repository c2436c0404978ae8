SELECT COUNT(*) FROM flights GROUP BY CUBE (carrier, dest, day, ts, delay, price, distance)
