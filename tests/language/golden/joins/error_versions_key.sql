SELECT 1 FROM flights f JOIN fares t ON f.carrier = t.carrier
