SELECT f.flight, fare FROM flights f JOIN fares t ON f.carrier = t.carrier AND t.dest = f.dest AND fare > 10 WHERE fare < f.delay
