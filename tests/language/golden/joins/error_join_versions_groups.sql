SELECT fare FROM carriers a JOIN fares p ON a.carrier = p.carrier AND p.dest = 'JFK'
