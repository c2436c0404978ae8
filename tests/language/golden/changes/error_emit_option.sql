SELECT dest FROM flights EMIT CHANGES WITH (formats = 'diff')
