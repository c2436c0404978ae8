SELECT dest FROM flights EMIT CHANGES WITH (snapshot = true) WITH (format = 'diff')
