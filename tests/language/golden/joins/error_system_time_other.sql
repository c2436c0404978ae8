SELECT f.carrier, t.fare FROM flights f JOIN fares FOR SYSTEM_TIME AS OF f.day AS t ON f.carrier = t.carrier AND f.dest = t.dest
