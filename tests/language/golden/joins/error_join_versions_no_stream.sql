SELECT fare FROM planes a JOIN fares p ON a.model = p.carrier AND p.dest = 'JFK'
