INSERT INTO weather SELECT dest, delay, day, ts FROM flights WHERE delay > 3
