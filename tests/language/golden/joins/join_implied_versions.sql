SELECT delay, fare FROM flights f JOIN fares t ON f.carrier = t.carrier AND f.dest = t.dest WHERE f.carrier = 'AA'
