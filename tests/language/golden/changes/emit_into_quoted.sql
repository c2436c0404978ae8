SELECT dest FROM flights EMIT CHANGES WITH (format = 'diff') INTO "late-flights_2"
