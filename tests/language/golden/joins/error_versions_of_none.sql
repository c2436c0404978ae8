SELECT 1 FROM flights f JOIN weather w USING (dest) JOIN planes p ON p.flight = f.flight JOIN fares t ON t.carrier = p.model AND t.dest = 'JFK'
