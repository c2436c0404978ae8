SELECT f.carrier, t.fare FROM flights f LEFT JOIN fares FOR SYSTEM_TIME AS OF f.ts AS t ON f.carrier = t.carrier AND f.dest = t.dest
