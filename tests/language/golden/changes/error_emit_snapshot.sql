SELECT dest FROM flights EMIT CHANGES WITH (snapshot = 'first')
