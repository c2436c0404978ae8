SELECT carrier.code FROM flights
