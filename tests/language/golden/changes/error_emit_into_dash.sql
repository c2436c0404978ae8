SELECT dest FROM flights EMIT CHANGES INTO late-flights
