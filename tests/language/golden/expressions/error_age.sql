SELECT AGE(ts, ts) FROM flights
