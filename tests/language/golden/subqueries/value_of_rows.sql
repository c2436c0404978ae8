SELECT carrier, (SELECT wind FROM weather WHERE dest = 'JFK') AS wind FROM flights
